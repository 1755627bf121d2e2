import { type Cluster, startCluster } from '../../../test/cluster/start.ts';
import type { ClusterInfo } from '../../../test/support/cluster-info.ts';
import { K8s } from '../../../test/support/k8s.ts';
import { type Operator, startOperator } from '../../../test/support/operator.ts';
import { createOperatorAccount, installCrds } from '../../../test/support/operator-account.ts';
import { s3Client } from '../../../test/support/s3.ts';
import { duration, type Screen } from './screen.ts';

/** Namespace of the demo's objects. */
export const NAMESPACE = 'demo';
/** Namespace of the operator, as the chart has it. */
const OPERATOR_NAMESPACE = 'skill-operator-system';
/** Bucket of the packages. */
export const BUCKET = 'skills';

/** What the steps need of an operator, wherever it runs. */
export type Hands = Pick<Operator, 'k8s' | 'source' | 'skill' | 'check' | 'info' | 'bucket'>;

/** What every step of the demo works with. */
export interface Stage {
  screen: Screen;
  signal: AbortSignal;
  /** The marketplace that was asked for; undefined: examples/marketplace. */
  url: string | undefined;
  /** Runs one numbered step; `act` resolves with the sentence that sums it up. */
  step(title: string, act: () => Promise<string>): Promise<void>;
  /** Resolves like the promise, or rejects as soon as the person stops the demo. */
  unlessStopped<T>(promise: Promise<T>): Promise<T>;
  /** Registers what has to be cleaned up; the last comes first. */
  defer(clean: () => Promise<unknown>): void;
}

const now = (): number => performance.now();

/** Builds the stage for `total` steps; `cleanUp` ends everything that was deferred, whatever fails on the way. */
export function createStage(
  given: Pick<Stage, 'screen' | 'signal' | 'url'>,
  total: number,
): { stage: Stage; cleanUp: () => Promise<void> } {
  const { screen, signal } = given;
  const cleaners: (() => Promise<unknown>)[] = [];
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  stopped.catch(() => undefined);
  signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  let number = 0;
  const unlessStopped = <T>(promise: Promise<T>): Promise<T> => Promise.race([promise, stopped]);
  return {
    stage: {
      ...given,
      unlessStopped,
      defer: (clean) => cleaners.push(clean),
      step: async (title, act) => {
        signal.throwIfAborted();
        number++;
        const began = now();
        screen.print('', screen.paint('bold', `${number}/${total}  ${title}`));
        const summary = await unlessStopped(act());
        screen.say(`${screen.paint('green', '✓')} ${summary}  ${screen.paint('dim', `(${duration(now() - began)})`)}`);
      },
    },
    cleanUp: async () => {
      for (const clean of cleaners.splice(0).reverse()) await clean().catch(() => undefined);
    },
  };
}

/** What the cluster says; a line that counts seconds replaces the one before where that can be done. */
export function progress(screen: Screen, line: string): void {
  const text = screen.paint('dim', line.slice(0, screen.width));
  if (screen.liveRows !== undefined && /\b\d+ s\b/.test(line)) screen.live([text]);
  else screen.say(text);
}

/** Starts API server, S3 and Git; a KUBECONFIG in the environment is not touched, the demo has a cluster of its own. */
export async function bringUpCluster(stage: Stage): Promise<Cluster> {
  const { screen, signal, defer, unlessStopped } = stage;
  const starting = startCluster({
    kubeconfig: '',
    signal,
    say: (line) => progress(screen, line),
  });
  defer(async () => await (await starting).stop());
  return await unlessStopped(starting);
}

/** Version of the API server, such as `v1.34.4`. */
export async function kubernetesVersion({ kubeconfig }: ClusterInfo): Promise<string> {
  await using k8s = new K8s(kubeconfig);
  const { text } = await k8s.api.request('GET', '/version');
  return (JSON.parse(text) as { gitVersion: string }).gitVersion;
}

/** Installs CRDs and RBAC, makes namespaces and bucket, starts `src/main.ts` as the chart's ServiceAccount and waits for its caches. */
export async function bringUpOperator(stage: Stage, cluster: Cluster): Promise<Operator> {
  const { info } = cluster;
  const begin = async (): Promise<Operator> => {
    await installCrds(info);
    await using k8s = new K8s(info.kubeconfig);
    for (const name of [NAMESPACE, OPERATOR_NAMESPACE])
      await k8s.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    const account = await createOperatorAccount(info, OPERATOR_NAMESPACE);
    await s3Client(info.s3).makeBucket(BUCKET, info.s3.region);
    return await startOperator(info, { account, namespace: NAMESPACE, bucket: BUCKET, watchAll: true });
  };
  const starting = begin();
  stage.defer(async () => await (await starting)[Symbol.asyncDispose]());
  return await stage.unlessStopped(starting);
}
