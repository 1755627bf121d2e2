import { CONFIG_MAPS } from '../../api/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Deployment } from '../cluster/home.ts';
import { type Leader, leadersOf } from '../cluster/lease.ts';
import { listAll } from '../cluster/objects.ts';
import { age, count } from '../terminal.ts';
import { type Check, type Finding, fail, ok, warn } from './finding.ts';

/** What is to be said of the Deployment. Pure. */
export function deploymentFinding(deployment: Deployment | undefined, namespace: string): Finding {
  const check = 'Deployment';
  if (!deployment)
    return warn(
      check,
      'none was found; is the operator started by hand?',
      'name its namespace with --operator-namespace, or install the chart',
    );
  const { name } = deployment.metadata;
  const wanted = deployment.spec?.replicas ?? 1;
  const ready = deployment.status?.readyReplicas ?? 0;
  const look = `kubectl -n ${namespace} describe deploy/${name}; kubectl -n ${namespace} logs deploy/${name} --previous`;
  if (wanted === 0)
    return fail(check, `${name} is scaled to 0`, `kubectl -n ${namespace} scale deploy/${name} --replicas=1`);
  if (ready === 0) return fail(check, `no pod of ${name} is ready`, look);
  if (ready < wanted) return warn(check, `${ready} of ${wanted} pods of ${name} are ready`, look);
  return ok(check, `${name} in ${namespace}, ${count(ready, 'pod')} ready`);
}

/** What is to be said of the Lease. Pure. */
export function leaseFinding(leader: Leader, namespace: string): Finding {
  const start = `kubectl -n ${namespace} get pods; without one: kubectl -n ${namespace} rollout restart deploy/skill-operator`;
  if (leader.alive) return ok('Lease', `${leader.lease} is held by ${leader.holder}, renewed ${age(leader.ageMs)} ago`);
  if (leader.holder === undefined)
    return fail(
      'Lease',
      `namespace ${namespace} has no Lease skill-operator: no operator has worked there`,
      `${start}; another namespace: --operator-namespace`,
    );
  if (leader.holder === '') return fail('Lease', `nobody holds ${leader.lease}: the operator has stopped`, start);
  const when = leader.ageMs === undefined ? '' : `, ${age(leader.ageMs)} ago by its own clock`;
  return fail('Lease', `${leader.holder} no longer renews ${leader.lease}${when}: no operator works`, start);
}

interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

/** The blocks in ConfigMap skill-operator-state, each with the command that lifts it. Pure. */
export function blockFindings(data: Readonly<Record<string, string>>): Finding[] {
  return Object.entries(data).map(([kind, text]) => {
    try {
      const { message, allow } = JSON.parse(text) as { message?: unknown; allow?: unknown };
      return warn('blocks', `${kind}: ${String(message)}`, `if that is meant: ${String(allow)}`);
    } catch {
      return warn(
        'blocks',
        `${kind}: its entry in ConfigMap skill-operator-state cannot be read`,
        'remove the entry; the operator writes it anew',
      );
    }
  });
}

/** The Deployment, where there is one. */
export const deployment: Check = {
  name: 'Deployment',
  run: async ({ home }) => [deploymentFinding(home.deployment, home.namespace)],
};

/** Somebody holds the Lease and renews it. */
export const lease: Check = {
  name: 'Lease',
  run: async ({ session, home, clock }, signal) => {
    const leaders = await leadersOf(session, home.namespace, clock, signal);
    return leaders.map((leader) => leaseFinding(leader, home.namespace));
  },
};

/** Nothing waits for a person. */
export const blocks: Check = {
  name: 'blocks',
  run: async ({ session, home }, signal) => {
    const map = await session.api.get<ConfigMap>(CONFIG_MAPS, home.namespace, 'skill-operator-state', signal);
    const found = blockFindings(map?.data ?? {});
    return found.length > 0 ? found : [ok('blocks', 'none stands in ConfigMap skill-operator-state')];
  },
};

/** Nothing outside waits for its removal. */
export const ledger: Check = {
  name: 'ledger',
  run: async ({ session, home }, signal) => {
    const scope = { namespace: home.namespace, labelSelector: 'skills.tfrobot.io/ledger=true' };
    const entries = await listAll<ConfigMap>(session, CONFIG_MAPS, scope, signal);
    if (entries.length === 0) return [ok('ledger', 'no image and no template waits for its removal')];
    const look = `kubectl -n ${home.namespace} get configmaps -l ${scope.labelSelector} -o yaml`;
    return [
      warn(
        'ledger',
        `${count(entries.length, 'version')} of deleted Skills could not be removed yet; the operator keeps trying`,
        look,
      ),
    ];
  },
};
