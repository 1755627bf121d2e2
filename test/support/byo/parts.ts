import { randomBytes } from 'node:crypto';
import { pushImage } from '../../cluster/node/push.ts';
import { CubeStub } from '../../contract/engine/stubs/cubesandbox.ts';
import { E2BStub } from '../../contract/engine/stubs/e2b.ts';
import { dockerConfig } from '../../integration/build/registries.ts';
import type { ClusterInfo, NodeInfo } from '../cluster-info.ts';
import { type Gate, startGate } from '../gate.ts';
import { operatorImage } from '../image.ts';
import { K8s, type K8sObject } from '../k8s.ts';
import type { OperatorOptions } from '../operator.ts';
import { allowBuilds, createOperatorAccount, type OperatorAccount } from '../operator-account.ts';
import { podNamespace, runPod } from '../pods.ts';

type Say = (line: string) => void;

const aloud: Say = (line) => void process.stderr.write(`[operator image] ${line}\n`);

/** What a test file may set; the rest suits a small node. */
export interface ByoOptions {
  /** On top of `build` and `engines` of the settings file, one level deep. */
  build?: Record<string, unknown>;
  /** Gets one line for every step that takes a while; default: standard error. */
  say?: Say;
  /** How the operator runs. */
  operator?: Pick<OperatorOptions, 'env' | 'args' | 'main' | 'watchAll'>;
  /** Puts something between the operator and the API server. */
  through?: (account: OperatorAccount) => Promise<OperatorAccount>;
}

/** Keys that the stubs accept. */
export const KEYS = { e2b: 'e2b_aaaaaaaaaaaaaaaa', cubesandbox: `cube-${randomBytes(12).toString('hex')}` };
const TICK_MS = 200;
/** The node imports two images on a busy machine. */
const WARM_MS = 240_000;
/** The engines, as runtimes name them. */
export type EngineName = 'e2b' | 'cubesandbox';

/** By the registry that it was pushed to. */
const pulled = new Map<string, Promise<string>>();

/** The operator's image in the registry of base images; made, pushed and pulled by the node once. */
export const jobsImage = ({ node, k8s }: Pick<ByoParts, 'node' | 'k8s'>, say: Say): Promise<string> => {
  const pull = async (): Promise<string> => {
    const { signal } = new AbortController();
    const { layout } = await operatorImage(say, signal);
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
  };
  const known = pulled.get(node.baseRegistry.address) ?? pull();
  pulled.set(node.baseRegistry.address, known);
  return known;
};

/** Everything around the operator. */
export interface ByoParts {
  info: ClusterInfo;
  node: NodeInfo;
  k8s: K8s;
  account: OperatorAccount;
  builds: string;
  e2b: E2BStub;
  cube: CubeStub;
  gates: Record<'e2b' | 'cubesandbox' | 'registry', Gate>;
}

/** Settings of builds: with what they build, on what, and where they push to. */
export const imagesOf = ({ node, gates }: Pick<ByoParts, 'node' | 'gates'>) => ({
  builderImage: node.images.kaniko,
  registry: {
    host: gates.registry.address,
    prefix: 'skills',
    insecure: true,
    pushSecret: 'registry-push',
    credentialSecret: 'registry',
  },
  baseImages: { insecure: [node.baseRegistry.address] },
});

/** Settings of the E2B engine. */
export const e2bOf = ({ gates }: Pick<ByoParts, 'gates'>) => ({
  url: `http://${gates.e2b.address}`,
  keySecret: 'e2b',
  pullSecret: 'registry',
});

/** The settings file of an operator that builds on the node and registers with the stubs. */
export async function settingsOf(parts: ByoParts, options: ByoOptions): Promise<object> {
  const { builds, gates } = parts;
  const step = { requests: {}, limits: { memory: '256Mi', 'ephemeral-storage': '256Mi' } };
  const build = { requests: {}, limits: { memory: '512Mi', 'ephemeral-storage': '1Gi' } };
  return {
    build: {
      namespace: builds,
      operatorImage: options.build?.operatorImage ?? (await jobsImage(parts, options.say ?? aloud)),
      ...imagesOf(parts),
      resources: { fetch: step, push: step, build },
      ...options.build,
    },
    engines: {
      e2b: e2bOf(parts),
      cubesandbox: {
        url: `http://${gates.cubesandbox.address}`,
        keySecret: 'cubesandbox',
        pullSecret: 'registry',
        plainHttpRegistry: true,
      },
    },
  };
}

/** Every Secret that the settings of an operator in the namespace `home` name. */
export function secretsOf(
  { node, builds, gates }: Pick<ByoParts, 'node' | 'builds' | 'gates'>,
  home: string,
): K8sObject[] {
  const { username, password } = node.registry;
  const text = dockerConfig(gates.registry.address, username, password);
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
    metadata: { name, namespace: home },
    stringData: { apiKey: KEYS[name] },
  });
  return [docker('registry-push', builds), docker('registry', home), key('e2b'), key('cubesandbox')];
}

/** The template that the operator's map has for `e2b::python`. */
async function registerPlatform({ url }: E2BStub): Promise<void> {
  const headers = { 'x-api-key': KEYS.e2b, 'content-type': 'application/json' };
  const { status } = await fetch(`${url}/v3/templates`, { method: 'POST', headers, body: '{"name":"e2b-python"}' });
  if (status !== 202) throw new Error(`the stub answers ${status} to a template`);
}

/** Starts stubs of the engines, and gates to them and to the registry that pods reach; `stack` gets what ends them. */
export async function openOutside(
  node: NodeInfo,
  stack: AsyncDisposableStack,
): Promise<Pick<ByoParts, 'e2b' | 'cube' | 'gates'>> {
  const e2b = stack.use(await new E2BStub().listen());
  const cube = stack.use(await new CubeStub().listen());
  cube.key = KEYS.cubesandbox;
  e2b.pollsToFinish = 0;
  await registerPlatform(e2b);
  const ticking = setInterval(() => cube.tick(), TICK_MS);
  stack.defer(() => clearInterval(ticking));
  const [hostname = '', port = ''] = node.registry.address.split(':');
  const gate = async (target: { hostname: string; port: string }) =>
    stack.use(await startGate(node.hostAddress, target));
  const gates = {
    e2b: await gate(new URL(e2b.url)),
    cubesandbox: await gate(new URL(cube.url)),
    registry: await gate({ hostname, port }),
  };
  return { e2b, cube, gates };
}

/** Starts what is outside and gives an operator its rights and Secrets; `stack` gets what ends all of it. */
export async function openParts(info: ClusterInfo, node: NodeInfo, stack: AsyncDisposableStack): Promise<ByoParts> {
  const k8s = stack.use(new K8s(info.kubeconfig));
  const account = await createOperatorAccount(info);
  const builds = await k8s.createNamespace('builds', { 'pod-security.kubernetes.io/enforce': 'baseline' });
  stack.defer(() => k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: builds }));
  await allowBuilds(info, account, builds);
  const parts: ByoParts = { info, node, k8s, account, builds, ...(await openOutside(node, stack)) };
  await k8s.apply(secretsOf(parts, account.namespace));
  return parts;
}
