import { NAMESPACES, PODS } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import { hasCode } from '../../kube/errors.ts';
import type { KubeObject } from '../../kube/types.ts';
import { listAll } from '../cluster/objects.ts';
import { type Bench, type Check, type Finding, fail, ok, warn } from './finding.ts';

const ENFORCE = 'pod-security.kubernetes.io/enforce';

/** What the Pod Security label of the build namespace means for builds. Pure. */
export function podSecurityFinding(name: string, namespace: KubeObject | undefined): Finding {
  const check = 'Pod Security';
  const label = `kubectl label --overwrite namespace ${name} ${ENFORCE}=baseline`;
  if (!namespace)
    return fail(
      check,
      `the build namespace ${name} does not exist`,
      'helm upgrade with builds.createNamespace=true, or create it and label it baseline',
    );
  const level = namespace.metadata.labels?.[ENFORCE];
  if (level === 'baseline') return ok(check, `build namespace ${name} enforces baseline`);
  if (level === 'restricted')
    return fail(check, `build namespace ${name} enforces restricted, under which no Dockerfile can be built`, label);
  return warn(
    check,
    `build namespace ${name} enforces ${level ?? 'nothing'}: a build pod that somebody else makes there could take over the node`,
    label,
  );
}

/** The build namespace lets build pods in, and nothing worse. */
export const podSecurity: Check = {
  name: 'Pod Security',
  run: async ({ session, home }, signal) => {
    if (home.settings && !home.settings.build) return [ok('Pod Security', 'image builds are off (config.build)')];
    const namespace = await session.api.get<KubeObject>(NAMESPACES, '', home.buildNamespace, signal);
    if (!namespace && !home.settings) return [ok('Pod Security', `no build namespace ${home.buildNamespace}`)];
    return [podSecurityFinding(home.buildNamespace, namespace)];
  },
};

interface Pod extends KubeObject {
  status?: { phase?: string };
}

/** Any pod of ours that has a log. */
async function somePod({ session, home }: Bench, signal: AbortSignal): Promise<Pod | undefined> {
  const selectors = [
    { namespace: home.namespace, labelSelector: 'app.kubernetes.io/part-of=skill-operator' },
    { namespace: home.namespace },
    { namespace: home.buildNamespace },
  ];
  for (const scope of selectors) {
    const pods = await listAll<Pod>(session, PODS, scope, signal);
    const running = pods.find(({ status }) => status?.phase === 'Running');
    if (running) return running;
  }
  return undefined;
}

/** The API server reaches a kubelet, which logs need. */
export const kubelet: Check = {
  name: 'kubelet',
  run: async (bench, signal) => {
    const pod = await somePod(bench, signal);
    if (!pod) return [warn('kubelet', 'not looked at: no pod of the operator runs', 'see the check Deployment')];
    const { namespace = '', name } = pod.metadata;
    try {
      const log = bench.session.api.stream(
        PODS,
        namespace,
        name,
        { path: 'log', query: { tailLines: 1, limitBytes: 256 } },
        signal,
      );
      for await (const _ of log) break;
      return [ok('kubelet', `the log of pod ${name} can be read`)];
    } catch (error) {
      signal.throwIfAborted();
      if (hasCode(error, 403))
        return [
          warn(
            'kubelet',
            'not looked at: you may not read logs (pods/log)',
            'ask an administrator for the cluster role view there',
          ),
        ];
      return [
        warn(
          'kubelet',
          `the log of pod ${name} cannot be read: ${messageOf(error)}`,
          'let the API server reach the nodes on port 10250; until then skillctl logs shows the end that the status keeps',
        ),
      ];
    }
  },
};
