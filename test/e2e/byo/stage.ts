import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { stringify } from 'yaml';
import { pushImage } from '../../cluster/node/push.ts';
import { CubeStub } from '../../contract/engine/stubs/cubesandbox.ts';
import { E2BStub } from '../../contract/engine/stubs/e2b.ts';
import type { SeenRequest, StubAnswer } from '../../contract/engine/stubs/server.ts';
import type { ClusterInfo, NodeInfo } from '../../support/cluster-info.ts';
import type { TestFile } from '../../support/git.ts';
import { operatorImage } from '../../support/image.ts';
import { K8s, type K8sObject, type Ref } from '../../support/k8s.ts';
import { applySource, marketplace, newRepository, requestPass, skillMd } from '../../support/market.ts';
import { type Operator, type OperatorOptions, startOperator } from '../../support/operator.ts';
import { allowBuilds, createOperatorAccount, type OperatorAccount } from '../../support/operator-account.ts';
import { podNamespace, runPod } from '../../support/pods.ts';
import { listObjects } from '../../support/s3.ts';
import { type Gate, startGate } from './gate.ts';

/** What a test file may set; the rest suits a small node. */
export interface StageOptions {
  /** On top of `build` and `engines` of the settings file, one level deep. */
  build?: Record<string, unknown>;
  /** How the operator runs. */
  operator?: Pick<OperatorOptions, 'env' | 'args' | 'watchAll'>;
}

/** Calls `after` when a request that changes something has taken effect, before its answer leaves. */
class WatchedE2B extends E2BStub {
  after: () => void = () => undefined;
  protected override answer(request: SeenRequest): StubAnswer {
    const answer = super.answer(request);
    if (request.method !== 'GET') this.after();
    return answer;
  }
}
class WatchedCube extends CubeStub {
  after: () => void = () => undefined;
  protected override answer(request: SeenRequest): StubAnswer {
    const answer = super.answer(request);
    if (request.method !== 'GET') this.after();
    return answer;
  }
}

const KEYS = { e2b: 'e2b_aaaaaaaaaaaaaaaa', cubesandbox: `cube-${randomBytes(12).toString('hex')}` };
const TICK_MS = 200;
/** The node imports two images on a busy machine. */
const WARM_MS = 240_000;
/** Builds, pulls and polls of one BYO version on a busy machine. */
export const LONG_MS = 120_000;

export type EngineName = 'e2b' | 'cubesandbox';

let ready: Promise<string> | undefined;

/** The operator's image in the registry of base images; made, pushed and pulled by the node once. */
const jobsImage = ({ node, k8s }: Pick<Parts, 'node' | 'k8s'>): Promise<string> => {
  ready ??= (async () => {
    const { signal } = new AbortController();
    const { layout } = await operatorImage((line) => process.stderr.write(`[operator image] ${line}\n`), signal);
    const image = await pushImage(layout, node.baseRegistry, 'skill-operator', signal);
    const namespace = await podNamespace(k8s, 'images');
    const timeoutMs = WARM_MS;
    await runPod(k8s, { name: 'operator', namespace, image, container: { args: ['--version'] }, timeoutMs });
    await runPod(k8s, {
      name: 'kaniko',
      namespace,
      image: node.images.kaniko,
      container: { args: ['version'] },
      timeoutMs,
    });
    await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
    return image;
  })();
  return ready;
};

interface Parts {
  info: ClusterInfo;
  node: NodeInfo;
  k8s: K8s;
  account: OperatorAccount;
  builds: string;
  e2b: WatchedE2B;
  cube: WatchedCube;
  gates: Record<'e2b' | 'cubesandbox' | 'registry', Gate>;
}

/** The settings file of an operator that builds on the node and registers with the stubs. */
async function settingsOf(parts: Parts, options: StageOptions): Promise<object> {
  const { node, builds, gates } = parts;
  const step = { requests: {}, limits: { memory: '256Mi', 'ephemeral-storage': '256Mi' } };
  const build = { requests: {}, limits: { memory: '512Mi', 'ephemeral-storage': '1Gi' } };
  return {
    build: {
      namespace: builds,
      operatorImage: await jobsImage(parts),
      builderImage: node.images.kaniko,
      registry: {
        host: gates.registry.address,
        prefix: 'skills',
        insecure: true,
        pushSecret: 'registry-push',
        credentialSecret: 'registry',
      },
      baseImages: { insecure: [node.baseRegistry.address] },
      resources: { fetch: step, push: step, build },
      ...options.build,
    },
    engines: {
      e2b: { url: `http://${gates.e2b.address}`, keySecret: 'e2b', pullSecret: 'registry' },
      cubesandbox: {
        url: `http://${gates.cubesandbox.address}`,
        keySecret: 'cubesandbox',
        pullSecret: 'registry',
        plainHttpRegistry: true,
      },
    },
  };
}

async function applySecrets({ node, k8s, account, builds, gates }: Parts): Promise<void> {
  const { username, password } = node.registry;
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  const text = JSON.stringify({ auths: { [gates.registry.address]: { auth } } });
  const docker = (name: string, namespace: string): K8sObject => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    type: 'kubernetes.io/dockerconfigjson',
    stringData: { '.dockerconfigjson': text },
  });
  const key = (name: EngineName): K8sObject => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: account.namespace },
    stringData: { apiKey: KEYS[name] },
  });
  const home = account.namespace;
  await k8s.apply([docker('registry-push', builds), docker('registry', home), key('e2b'), key('cubesandbox')]);
}

/** An operator that builds on the node, the engines' stubs, and hands on everything that a version leaves behind. */
export class Stage implements AsyncDisposable {
  readonly operator: Operator;
  readonly node: NodeInfo;
  /** Namespace of the Jobs. */
  readonly builds: string;
  readonly e2b: WatchedE2B;
  readonly cube: WatchedCube;
  readonly gates: Parts['gates'];
  /** Every secret value of this stage, by what it is. */
  readonly secrets: ReadonlyMap<string, string>;
  readonly #close: () => Promise<void>;

  /** Use `openStage`. */
  constructor(operator: Operator, parts: Parts, close: () => Promise<void>) {
    this.operator = operator;
    this.node = parts.node;
    this.builds = parts.builds;
    this.e2b = parts.e2b;
    this.cube = parts.cube;
    this.gates = parts.gates;
    this.#close = close;
    this.bare = parts.k8s;
    const { username, password } = parts.node.registry;
    this.secrets = new Map([
      ['registry password', password],
      ['registry credential', Buffer.from(`${username}:${password}`).toString('base64')],
      ['S3 secret key', parts.info.s3.secretKey],
      ['E2B key', KEYS.e2b],
      ['CubeSandbox key', KEYS.cubesandbox],
    ]);
  }

  /** Access that does not mind when the operator is dead. */
  readonly bare: K8s;

  /** Calls `act` for every request that changed something at an engine, before the operator hears of it. */
  onEngineWrite(act: () => void): void {
    this.e2b.after = act;
    this.cube.after = act;
  }

  get k8s(): K8s {
    return this.operator.k8s;
  }

  /** A Dockerfile on the node's busybox. */
  from(...lines: string[]): string {
    return `${[`FROM ${this.node.images.busybox}`, ...lines].join('\n')}\n`;
  }

  /** Files of a skill with a Dockerfile of its own. */
  skill(engine: EngineName, name: string, dockerfile: string, more: Record<string, TestFile> = {}) {
    return { 'SKILL.md': skillMd({ name, runtime: engine }), [`.${engine}.dockerfile`]: dockerfile, ...more };
  }

  /** A marketplace of one plugin `p`; its Skills are `<name>.p.<skill>`. */
  async market(name: string, skills: Record<string, Record<string, TestFile>>, spec: Record<string, unknown> = {}) {
    const repository = await newRepository(this.operator);
    await repository.commit(marketplace({ p: skills }));
    const source = await applySource(this.operator, name, repository, spec);
    const push = async (change: Record<string, Record<string, TestFile>>) => {
      await repository.commit(marketplace({ p: change }), { keep: false });
      await requestPass(this.k8s, source);
    };
    return { repository, source, push };
  }

  /** Waits for a Skill; `what` tells the reader of a failure what was missed. */
  async until(name: string, what: string, accept: (status: K8sObject) => boolean, timeoutMs = LONG_MS) {
    return await this.k8s.waitFor(this.operator.skill(name), accept, { timeoutMs, what: `Skill ${name}: ${what}` });
  }

  /** Ids of all templates of an engine whose names or images are of this Skill. */
  templates(engine: EngineName, bareName: string): string[] {
    return engine === 'e2b'
      ? [...this.e2b.templates.values()].filter((t) => t.alias.startsWith(`${bareName}-`)).map((t) => t.templateID)
      : [...this.cube.templates.values()].filter((t) => t.alias?.startsWith(`${bareName}-`)).map((t) => t.templateID);
  }

  /** Answer of the registry, with its credential. */
  async registry(path: string, method: 'GET' | 'HEAD' = 'GET') {
    const { address, username, password } = this.node.registry;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    const accept = 'application/vnd.oci.image.manifest.v1+json';
    const { statusCode, headers, body } = await request(`http://${address}/v2/${path}`, {
      method,
      headers: { authorization, accept },
    });
    const text = await body.text();
    return { status: statusCode, text, digest: String(headers['docker-content-digest'] ?? '') };
  }

  /** True when the registry has the pinned image. */
  async hasImage(image: string): Promise<boolean> {
    const [, repository, digest] = /^[^/]+\/([^@]+)@(.+)$/.exec(image) ?? [];
    const { status } = await this.registry(`${repository}/manifests/${digest}`, 'HEAD');
    return status === 200;
  }

  /** Digests of the images in the repository of a Skill that have a tag, sorted. */
  async images(skill: string, engine: EngineName): Promise<string[]> {
    const { text } = await this.registry('_catalog?n=1000');
    const { repositories } = JSON.parse(text) as { repositories: string[] };
    const name = new RegExp(`/${this.operator.namespace}/${skill.slice(0, 40)}-[0-9a-f]{8}-${engine}$`);
    const found = new Set<string>();
    for (const repository of repositories.filter((one) => name.test(one))) {
      const list = await this.registry(`${repository}/tags/list`);
      const tags = list.status === 200 ? ((JSON.parse(list.text) as { tags: string[] | null }).tags ?? []) : [];
      for (const tag of tags) {
        const { status, digest } = await this.registry(`${repository}/manifests/${tag}`, 'HEAD');
        if (status === 200) found.add(digest);
      }
    }
    return [...found].sort();
  }

  /** Keys of the image records of a Skill in the bucket. */
  async records(skill: string, engine: EngineName): Promise<string[]> {
    const objects = await listObjects(this.operator.info.s3, this.operator.bucket);
    const part = `/images/${this.operator.namespace}/${skill}-${engine}/`;
    return objects.map(({ key }) => key).filter((key) => key.includes(part));
  }

  /** The Jobs of a Skill, or of all. */
  async jobs(skill?: string): Promise<K8sObject[]> {
    const jobs = await this.k8s.list({ apiVersion: 'batch/v1', kind: 'Job', namespace: this.builds });
    const annotation = `${this.operator.namespace}/${skill}`;
    return jobs.filter(
      ({ metadata }) => skill === undefined || metadata.annotations?.['skills.tfrobot.io/skill'] === annotation,
    );
  }

  job(name: string): Ref {
    return { apiVersion: 'batch/v1', kind: 'Job', name, namespace: this.builds };
  }

  /** The entries of the ledger. */
  async ledger(): Promise<{ skill: string; templateID?: string; image?: string; why: string }[]> {
    const maps = await this.k8s.list({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      namespace: this.operator.account.namespace,
      labelSelector: 'skills.tfrobot.io/ledger=true',
    });
    return maps.map(({ data }) => JSON.parse(data.entry));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}

/** The template that the operator's map has for `e2b::python`. */
async function registerPlatform({ url }: E2BStub): Promise<void> {
  const headers = { 'x-api-key': KEYS.e2b, 'content-type': 'application/json' };
  const { status } = await fetch(`${url}/v3/templates`, { method: 'POST', headers, body: '{"name":"e2b-python"}' });
  if (status !== 202) throw new Error(`the stub answers ${status} to a template`);
}

/** Starts the stubs, gives the operator its Secrets and settings, and starts it. */
export async function openStage(info: ClusterInfo, node: NodeInfo, options: StageOptions = {}): Promise<Stage> {
  const k8s = new K8s(info.kubeconfig);
  const dir = mkdtempSync(join(tmpdir(), 'skill-operator-byo-'));
  const account = await createOperatorAccount(info);
  const builds = await k8s.createNamespace('builds', { 'pod-security.kubernetes.io/enforce': 'baseline' });
  await allowBuilds(info, account, builds);
  const e2b = await new WatchedE2B().listen();
  const cube = await new WatchedCube().listen();
  cube.key = KEYS.cubesandbox;
  e2b.pollsToFinish = 0;
  await registerPlatform(e2b);
  const { hostAddress } = node;
  const [host = '', port = ''] = node.registry.address.split(':');
  const gates = {
    e2b: await startGate(hostAddress, new URL(e2b.url)),
    cubesandbox: await startGate(hostAddress, new URL(cube.url)),
    registry: await startGate(hostAddress, { hostname: host, port }),
  };
  const parts: Parts = { info, node, k8s, account, builds, e2b, cube, gates };
  await applySecrets(parts);
  const file = join(dir, 'config.yaml');
  writeFileSync(file, stringify(await settingsOf(parts, options)));
  const { args = [], ...rest } = options.operator ?? {};
  const operator = await startOperator(info, {
    account,
    args: ['--config', file, '--leader-election=false', ...args],
    ...rest,
  });
  const ticking = setInterval(() => cube.tick(), TICK_MS);
  return new Stage(operator, parts, async () => {
    try {
      await operator[Symbol.asyncDispose]();
    } finally {
      clearInterval(ticking);
      for (const gate of Object.values(gates)) await gate[Symbol.asyncDispose]();
      await e2b[Symbol.asyncDispose]();
      await cube[Symbol.asyncDispose]();
      await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: builds });
      await k8s[Symbol.asyncDispose]();
      rmSync(dir, { recursive: true, force: true });
    }
  });
}

/** The Skill is Ready for its spec as it stands. */
export const isReady = ({ metadata, status }: K8sObject): boolean =>
  status?.observedGeneration === metadata.generation &&
  (status?.conditions ?? []).some(
    (one: { type: string; status: string }) => one.type === 'Ready' && one.status === 'True',
  );
