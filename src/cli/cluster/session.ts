import packageJson from '../../../package.json' with { type: 'json' };
import type { Clock } from '../../base/clock.ts';
import { messageOf, stalled } from '../../base/errors.ts';
import { KubeError } from '../../kube/errors.ts';
import type { KubeClient } from '../../kube/rest.ts';

/** The flags of every command that talks to a cluster, as kubectl has them. */
export interface ClusterFlags {
  kubeconfig?: string;
  context?: string;
  namespace?: string;
}

/** Field manager of everything that skillctl writes. */
export const FIELD_MANAGER = 'skillctl';

/** A connection to the cluster of one command. */
export interface Session extends AsyncDisposable {
  api: KubeClient;
  /** That of `--namespace`, else of the context, else `default`. */
  namespace: string;
  /** Name of the context; absent inside a pod or without a kubeconfig. */
  context: string | undefined;
  /** Address of the API server, for messages. */
  server: string;
}

/** Connects with the kubeconfig that kubectl would use; opens no connection yet. Rejects where the kubeconfig cannot be used. */
async function openSession(flags: ClusterFlags, clock: Clock): Promise<Session> {
  // The Kubernetes client takes longer to load than most commands take to run.
  const [{ loadKubeConfig }, { KubeClient }] = await Promise.all([
    import('../../kube/connection.ts'),
    import('../../kube/rest.ts'),
  ]);
  const load = () => loadKubeConfig(flags.kubeconfig, flags.context);
  let config: ReturnType<typeof load>;
  try {
    config = load();
  } catch (error) {
    throw stalled('InvalidSpec', `the kubeconfig cannot be used: ${messageOf(error)}; set KUBECONFIG or --kubeconfig`);
  }
  const api = new KubeClient({ load, version: packageJson.version, component: 'skillctl', connections: 8, clock });
  return {
    api,
    namespace: flags.namespace ?? api.namespace ?? 'default',
    context: config.getCurrentContext() || undefined,
    server: config.getCurrentCluster()?.server ?? '',
    [Symbol.asyncDispose]: () => api.close(),
  };
}

/** What a person can do about a call that failed; '' where nothing is known. */
function adviceFor(error: KubeError, { server, context }: Pick<Session, 'server' | 'context'>): string {
  if (error.code === 401) return 'log in again: the API server does not accept the credentials of your kubeconfig';
  if (error.code === 403) return 'ask for the cluster role edit (to look only: view) in that namespace';
  if (error.reason === 'ResourceNotFound')
    return 'install the CRDs: helm install skill-operator, or kubectl apply -f crds/';
  if (error.code !== 0) return '';
  const at = `${server || 'no address'}${context === undefined ? '' : ` of context ${context}`}`;
  return `does the API server at ${at} run, and is it the one that you mean? Choose another with --context or KUBECONFIG`;
}

/** Runs `work` with a session; a refusal of the API server gets the advice that helps. */
export async function inCluster<T>(
  flags: ClusterFlags,
  clock: Clock,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  await using session = await openSession(flags, clock);
  try {
    return await work(session);
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    const advice = adviceFor(error, session);
    throw new Error(advice === '' ? error.message : `${error.message}; ${advice}`, { cause: error });
  }
}
