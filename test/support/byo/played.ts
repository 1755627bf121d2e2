import { createHash } from 'node:crypto';
import { imageTag } from '../../../src/build/names.ts';
import { formatResult } from '../../../src/build/result.ts';
import { startRegistry, type TestRegistry } from '../../integration/build/registries.ts';
import type { ClusterInfo, NodeInfo } from '../cluster-info.ts';
import { K8s, type K8sObject } from '../k8s.ts';
import type { ByoOptions } from './parts.ts';
import { type ByoStage, openByoStage } from './stage.ts';

const LOOK_MS = 100;
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const hex = 'a'.repeat(64);

const sha256 = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`;

/** Puts a tiny image with that text into a repository, as `push` would; what it reports. */
async function pushTiny(registry: TestRegistry, repository: string, text: string) {
  const authorization = `Basic ${Buffer.from(`${registry.username}:${registry.password}`).toString('base64')}`;
  const base = `http://${registry.host}/v2/${repository}`;
  const send = async (url: string, method: string, body: string, type: string): Promise<Response> => {
    const answer = await fetch(url, { method, body, headers: { authorization, 'content-type': type } });
    if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const config = JSON.stringify({ architecture: 'amd64', os: 'linux', config: { Labels: { text } }, rootfs: {} });
  const upload = await send(`${base}/blobs/uploads/`, 'POST', '', 'application/octet-stream');
  const place = new URL(upload.headers.get('location') ?? '', base);
  place.searchParams.set('digest', sha256(config));
  await send(place.href, 'PUT', config, 'application/octet-stream');
  const mediaType = 'application/vnd.oci.image.config.v1+json';
  const manifest = JSON.stringify({
    ...{ schemaVersion: 2, mediaType: MANIFEST, layers: [] },
    config: { mediaType, digest: sha256(config), size: config.length },
  });
  const digest = sha256(manifest);
  await send(`${base}/manifests/${imageTag(digest)}`, 'PUT', manifest, MANIFEST);
  return { digest, size: manifest.length + config.length };
}

/**
 * Stands for kubelet and Kaniko where there is no node: it takes the pods that the real Job controller makes, pushes a tiny image of each
 * input into a real registry and writes the pod's status as a kubelet would. Everything else is what it is on a node.
 */
class PlayedNode implements AsyncDisposable {
  readonly #k8s: K8s;
  readonly #namespace: string;
  readonly #registry: TestRegistry;
  readonly #ended = new Set<string>();
  readonly #end = new AbortController();
  readonly #running: Promise<void>;

  constructor(k8s: K8s, namespace: string, registry: TestRegistry) {
    this.#k8s = k8s;
    this.#namespace = namespace;
    this.#registry = registry;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#end.signal.aborted) {
      const pods = await this.#pods().catch(() => []);
      // A pod that goes meanwhile is nobody's loss.
      for (const pod of pods) await this.#play(pod).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  #pods(): Promise<K8sObject[]> {
    return this.#k8s.list({ apiVersion: 'v1', kind: 'Pod', namespace: this.#namespace });
  }

  async #play({ metadata, spec }: K8sObject): Promise<void> {
    const uid = metadata.uid ?? '';
    if (this.#ended.has(uid) || metadata.deletionTimestamp) return;
    const { 'skills.tfrobot.io/image': image = '', 'skills.tfrobot.io/input-hash': input = '' } =
      metadata.annotations ?? {};
    const result = await pushTiny(this.#registry, image.slice(image.indexOf('/') + 1), input);
    const done = (name: string, message?: string) => ({
      ...{ name, image: 'played', imageID: '', ready: false, restartCount: 0 },
      state: { terminated: { exitCode: 0, reason: 'Completed', finishedAt: new Date().toISOString(), message } },
    });
    const status = {
      phase: 'Succeeded',
      initContainerStatuses: spec.initContainers.map(({ name }: { name: string }) => done(name)),
      containerStatuses: [done('push', formatResult(result))],
    };
    const ref = { apiVersion: 'v1', kind: 'Pod', name: metadata.name, namespace: this.#namespace };
    await this.#k8s.patch(ref, { status }, 'status');
    this.#ended.add(uid);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#running;
  }
}

/** A stage whose node is played. */
export interface PlayedStage extends AsyncDisposable {
  stage: ByoStage;
}

/** Opens a stage on a cluster without a node. `front`: the address by which the operator calls the registry, given its own. */
export async function openPlayedStage(
  info: ClusterInfo,
  options: ByoOptions = {},
  front: (address: string) => Promise<string> = (address) => Promise.resolve(address),
): Promise<PlayedStage> {
  await using stack = new AsyncDisposableStack();
  const registry = stack.use(await startRegistry({ auth: 'basic' }));
  const { username, password, host } = registry;
  const played = {
    ...{ name: 'played', address: '127.0.0.1', hostAddress: '127.0.0.1' },
    ...{ podRange: '', serviceRange: '', dnsAddress: '' },
    registry: { address: await front(host), insecure: true, username, password, pushSecret: '' },
    baseRegistry: { address: host, insecure: true },
    images: { busybox: `${host}/busybox@sha256:${hex}`, kaniko: `${host}/kaniko@sha256:${hex}` },
  } as const satisfies NodeInfo;
  const build = { operatorImage: 'played', ...options.build };
  const stage = stack.use(await openByoStage(info, played, { ...options, build }));
  const k8s = stack.use(new K8s(info.kubeconfig));
  stack.use(new PlayedNode(k8s, stage.builds, registry));
  const all = stack.move();
  return { stage, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
