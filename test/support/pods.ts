import { ApiFailure, type K8s, type K8sObject } from './k8s.ts';

/** Which pod is meant. */
interface PodRef {
  name: string;
  namespace: string;
}

interface PodRequest extends PodRef {
  image: string;
  /** Default: the image's own entry point. */
  command?: readonly string[];
  resources?: object;
  /** More of the container, and of the pod around it. */
  container?: object;
  spec?: object;
  /** Default: a minute. */
  timeoutMs?: number;
}

/** What the API shows of a container. */
export interface ContainerStatus {
  state?: { running?: object; waiting?: { reason?: string }; terminated?: { reason?: string; exitCode: number } };
}

const POD_TIMEOUT_MS = 60_000;

/** Creates a namespace that pods can be created in at once, with Pod Security `baseline` enforced unless told otherwise. */
export async function podNamespace(k8s: K8s, prefix: string, level = 'baseline'): Promise<string> {
  const namespace = await k8s.createNamespace(prefix, { 'pod-security.kubernetes.io/enforce': level });
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', name: 'default', namespace };
  await k8s.waitFor(account, () => true, { what: `the service account of ${namespace}` });
  return namespace;
}

/** The log of one container of a pod (default: its only one), as the API gives it. */
export async function logsOf(k8s: K8s, { name, namespace }: PodRef, container?: string): Promise<string> {
  const query = container === undefined ? '' : `?container=${encodeURIComponent(container)}`;
  const path = `${await k8s.path({ apiVersion: 'v1', kind: 'Pod', name, namespace })}/log${query}`;
  const answer = await k8s.api.request('GET', path);
  if (answer.status !== 200) throw new ApiFailure(`GET ${path}`, answer);
  return answer.text;
}

/** Waits until the first container of a pod is in a state. */
export async function waitForPod(
  k8s: K8s,
  { name, namespace }: PodRef,
  accept: (container: ContainerStatus) => boolean,
): Promise<K8sObject> {
  return await k8s.waitFor(
    { apiVersion: 'v1', kind: 'Pod', name, namespace },
    ({ status }) => accept(status?.containerStatuses?.[0] ?? {}),
    { timeoutMs: POD_TIMEOUT_MS },
  );
}

/** Runs a command in a pod of one container to its end, whatever that is. */
export async function runPod(k8s: K8s, request: PodRequest): Promise<{ pod: K8sObject; log: string }> {
  const { name, namespace, container, spec, timeoutMs = POD_TIMEOUT_MS, ...main } = request;
  await k8s.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: { restartPolicy: 'Never', containers: [{ name: 'main', ...main, ...container }], ...spec },
  });
  const ended = (phase: string) => phase === 'Succeeded' || phase === 'Failed';
  const ref = { apiVersion: 'v1', kind: 'Pod', name, namespace };
  const pod = await k8s.waitFor(ref, ({ status }) => ended(status?.phase), { timeoutMs });
  return { pod, log: await logsOf(k8s, { name, namespace }) };
}
