import { randomBytes } from 'node:crypto';
import { API_VERSION } from '../../../src/api/labels.ts';
import { pushImage } from '../../cluster/node/push.ts';
import { seaweedImage } from '../../cluster/node/services.ts';
import { type Cluster, startCluster } from '../../cluster/start.ts';
import { type ByoParts, e2bOf, imagesOf, jobsImage, openOutside, secretsOf } from '../byo/parts.ts';
import type { ClusterInfo, NodeInfo } from '../cluster-info.ts';
import { eventually } from '../eventually.ts';
import { CHART, Helm, type Values } from '../helm.ts';
import { K8s, type K8sObject, type Ref } from '../k8s.ts';
import { makeBucket } from '../s3.ts';
import { parseSamples, type Samples } from '../samples.ts';
import { startNameServer } from './name-server.ts';

/** Name of the release. */
export const RELEASE = 'skill-operator';
/** Namespace of the release, which enforces Pod Security `restricted`. */
export const HOME = 'skill-operator-system';
/** Namespace of builds, as the chart names it. */
export const BUILDS = 'skill-operator-builds';
const STORE_SECRET = 'skill-store';
/** Pods start on a busy machine. */
export const ROLLOUT_MS = 180_000;
/** `helm test` gives up by itself before. */
const HELM_MS = 300_000;

type Say = (line: string) => void;

/** What the stage is made of. */
interface Parts extends Pick<ByoParts, 'node' | 'k8s' | 'builds' | 'e2b' | 'cube' | 'gates'> {
  info: ClusterInfo;
  bucket: string;
  team: string;
  /** The operator's image, by digest. */
  image: string;
}

/** A cluster of its own with a node, a name server, engines' stubs and a bucket: everything that a release of the chart stands on. */
export class ChartStage implements AsyncDisposable {
  readonly info: ClusterInfo;
  readonly node: NodeInfo;
  readonly bucket: string;
  /** Namespace of a user. */
  readonly team: string;
  /** With cluster-admin. */
  readonly k8s: K8s;
  readonly e2b: Parts['e2b'];
  readonly #parts: Parts;
  readonly #helm: Helm;
  readonly #say: Say;
  readonly #close: () => Promise<void>;

  /** Use `openChartStage`. */
  constructor(parts: Parts, helm: Helm, say: Say, close: () => Promise<void>) {
    this.#say = say;
    this.#parts = parts;
    this.info = parts.info;
    this.node = parts.node;
    this.bucket = parts.bucket;
    this.team = parts.team;
    this.k8s = parts.k8s;
    this.e2b = parts.e2b;
    this.#helm = helm;
    this.#close = close;
  }

  /** Values of an installation with two replicas that builds images and registers them with the engines. */
  values(): Values {
    const { image, bucket, info } = this.#parts;
    const [repository = '', digest = ''] = image.split('@');
    const { endpoint, region } = info.s3;
    // A small node; the quota of the chart asks for each of the limits.
    const step = { requests: { cpu: '10m', memory: '64Mi' }, limits: { cpu: '1', memory: '256Mi' } };
    const build = { requests: { cpu: '10m', memory: '64Mi' }, limits: { cpu: '2', memory: '512Mi' } };
    return {
      image: { repository, digest },
      replicas: 2,
      resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } },
      mirrors: { sizeLimit: '1Gi' },
      store: { existingSecret: STORE_SECRET },
      networkPolicy: { gitPorts: [Number(new URL(info.git.httpUrl).port)] },
      config: {
        store: { endpoint, region, bucket },
        build: {
          ...imagesOf(this.#parts),
          resources: { fetch: step, push: step, build },
        },
        engines: { e2b: e2bOf(this.#parts) },
      },
    };
  }

  /** Values of an installation to try it out: with the S3 server of the chart, and without builds. */
  async tryOutValues(): Promise<Values> {
    const { signal } = new AbortController();
    const layout = await seaweedImage({ say: this.#say }, signal);
    const image = await pushImage(layout, this.node.baseRegistry, 'seaweedfs', signal);
    const { config: _config, store: _store, ...rest } = this.values();
    return { ...rest, replicas: 1, bundledS3: { enabled: true, image } };
  }

  /** Makes the namespaces and the Secrets that a person makes before the installation. */
  async prepare(): Promise<void> {
    const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    const { accessKey, secretKey } = this.info.s3;
    await this.k8s.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: HOME, labels: restricted } },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: this.team } },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: STORE_SECRET, namespace: HOME },
        stringData: { accessKey, secretKey },
      },
      ...this.#secrets(HOME),
    ]);
  }

  #secrets(namespace: string): K8sObject[] {
    return secretsOf(this.#parts, HOME).filter(({ metadata }) => metadata.namespace === namespace);
  }

  /** Makes the Secret that builds push with, in the namespace that the chart made. */
  async allowPush(): Promise<void> {
    await this.k8s.apply(this.#secrets(BUILDS));
  }

  /** Runs Helm on the release's namespace; what fails throws with Helm's own words. */
  async helm(args: readonly string[], values?: Values): Promise<string> {
    const options = { kubeconfig: this.info.kubeconfig, timeoutMs: HELM_MS, ...(values ? { values } : {}) };
    return await this.#helm.ok([...args, '--namespace', HOME], options);
  }

  /** Installs the chart and returns its notes. */
  install(values: Values): Promise<string> {
    return this.helm(['install', RELEASE, CHART], values);
  }

  /** Upgrades the release. */
  async upgrade(values: Values): Promise<void> {
    await this.helm(['upgrade', RELEASE, CHART], values);
  }

  /** True when every pod is of the newest template and ready, and no other is left. */
  async isRolledOut(): Promise<boolean> {
    const ref = { apiVersion: 'apps/v1', kind: 'Deployment', name: RELEASE, namespace: HOME };
    const deployment = await this.k8s.get(ref);
    if (!deployment) return false;
    const { metadata, spec, status = {} } = deployment;
    const counts = [status.updatedReplicas, status.readyReplicas, status.replicas];
    return status.observedGeneration === metadata.generation && counts.every((count) => count === spec.replicas);
  }

  /** Waits until the Deployment is rolled out. */
  async rolledOut(): Promise<void> {
    const options = { timeoutMs: ROLLOUT_MS, what: 'the rollout of the controller', intervalMs: 100 };
    await eventually(() => this.isRolledOut(), options);
  }

  /** Pods of the controller; those that are about to end only when asked for. */
  async pods(all = false): Promise<K8sObject[]> {
    const labelSelector = 'app.kubernetes.io/component=controller';
    const pods = await this.k8s.list({ apiVersion: 'v1', kind: 'Pod', namespace: HOME, labelSelector });
    return pods.filter(({ metadata }) => all || metadata.deletionTimestamp === undefined);
  }

  /** Name of the pod that holds the Lease; empty while nobody does. */
  async leader(): Promise<string> {
    const lease = await this.k8s.get({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      name: RELEASE,
      namespace: HOME,
    });
    // The pod's name, and a random part for each start of its process.
    return String(lease?.spec.holderIdentity ?? '').replace(/-[0-9a-f]{8}$/, '');
  }

  /** The values of a pod's /metrics. */
  async metrics(pod: string): Promise<Samples> {
    const found = await this.k8s.get({ apiVersion: 'v1', kind: 'Pod', name: pod, namespace: HOME });
    const answer = await fetch(`http://${found?.status.podIP}:8080/metrics`, { signal: AbortSignal.timeout(5_000) });
    return parseSamples(await answer.text());
  }

  skill(name: string): Ref {
    return { apiVersion: API_VERSION, kind: 'Skill', name, namespace: this.team };
  }

  source(name: string): Ref {
    return { apiVersion: API_VERSION, kind: 'MarketplaceSource', name, namespace: this.team };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}

/** Starts the cluster and everything in it but the release, for a user with the namespace `team`; `say` gets one line for every step that takes a while. */
export async function openChartStage(team: string, say: Say, signal: AbortSignal): Promise<ChartStage> {
  await using stack = new AsyncDisposableStack();
  const helm = stack.use(new Helm());
  await helm.prepare();
  const cluster: Cluster = await startCluster({ kubeconfig: '', node: true, say, signal });
  stack.defer(() => cluster.stop());
  const { node, ...info } = cluster.info;
  if (!node) throw new Error('the cluster came up without its node');
  const k8s = stack.use(new K8s(info.kubeconfig));
  await startNameServer(k8s, node, say, signal);
  const outside = await openOutside(node, stack);
  const image = await jobsImage({ node, k8s }, say);
  const bucket = await makeBucket(info.s3, `skills-${randomBytes(2).toString('hex')}`);
  const all = stack.move();
  const parts: Parts = { info, node, k8s, builds: BUILDS, bucket, team, image, ...outside };
  return new ChartStage(parts, helm, say, () => all.disposeAsync());
}
