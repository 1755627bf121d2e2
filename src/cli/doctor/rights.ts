import { hasCode } from '../../kube/errors.ts';
import type { KubeObject, Resource } from '../../kube/types.ts';
import type { Home } from '../cluster/home.ts';
import type { Session } from '../cluster/session.ts';
import { type Check, type Finding, fail, ok, warn } from './finding.ts';

const review = (kind: string): Resource => ({
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: `${kind.toLowerCase()}s`,
  kind,
  namespaced: false,
});
const SELF = review('SelfSubjectAccessReview');
const SUBJECT = review('SubjectAccessReview');

/** A right: verbs on a resource in a namespace; '' is every namespace. */
export interface Right {
  verbs: readonly string[];
  /** `<resource>[/<subresource>][.<group>]`, as RBAC and kubectl name it. */
  resource: string;
  namespace: string;
}

interface Answered extends KubeObject {
  status?: { allowed?: boolean };
}

function attributesOf({ resource, namespace }: Right, verb: string) {
  const [path = '', ...group] = resource.split('.');
  const [plural, subresource] = path.split('/');
  return { verb, group: group.join('.'), resource: plural, ...(subresource ? { subresource } : {}), namespace };
}

async function missing(
  session: Session,
  rights: readonly Right[],
  who: { user: string; groups: string[] } | undefined,
  signal: AbortSignal,
): Promise<string[]> {
  const resource = who ? SUBJECT : SELF;
  const asked = rights.flatMap((right) => right.verbs.map((verb) => ({ right, verb })));
  const denied = await Promise.all(
    asked.map(async ({ right, verb }) => {
      const spec = { resourceAttributes: attributesOf(right, verb), ...who };
      const body = { apiVersion: 'authorization.k8s.io/v1', kind: resource.kind, metadata: { name: '' }, spec };
      const { status } = await session.api.create<Answered>(resource, '', body, signal);
      const where = right.namespace === '' ? 'everywhere' : `in ${right.namespace}`;
      return status?.allowed ? undefined : `${verb} ${right.resource} ${where}`;
    }),
  );
  return denied.filter((one) => one !== undefined);
}

const KINDS = ['marketplacesources.skills.tfrobot.io', 'skills.skills.tfrobot.io'];

/** What each command of skillctl needs of the person. */
const ownRights = (namespace: string, home: Home): { what: string; rights: Right[] }[] => [
  { what: 'get and trace', rights: KINDS.map((resource) => ({ verbs: ['get', 'list'], resource, namespace })) },
  {
    what: 'reconcile, suspend, resume and rebuild',
    rights: KINDS.map((resource) => ({ verbs: ['patch'], resource, namespace })),
  },
  {
    what: 'logs',
    rights: [
      { verbs: ['list', 'get'], resource: 'pods', namespace: home.buildNamespace },
      { verbs: ['get'], resource: 'pods/log', namespace: home.buildNamespace },
    ],
  },
];

/** The person may do what the commands of skillctl need. */
export const yours: Check = {
  name: 'your rights',
  run: async ({ session, home }, signal) => {
    const findings = await Promise.all(
      ownRights(session.namespace, home).map(async ({ what, rights }): Promise<Finding> => {
        const denied = await missing(session, rights, undefined, signal);
        if (denied.length === 0) return ok('your rights', `enough for ${what}`);
        return warn(
          'your rights',
          `not enough for ${what}: ${denied.join(', ')}`,
          'ask an administrator for the cluster role edit there',
        );
      }),
    );
    return findings;
  },
};

/** What it may do where people have their sources. */
function watchedRights(namespace: string): Right[] {
  const [sources = '', skills = ''] = KINDS;
  const group = skills.slice('skills'.length);
  return [
    { verbs: ['get', 'list', 'watch'], resource: sources, namespace },
    { verbs: ['patch'], resource: `marketplacesources/status${group}`, namespace },
    { verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'], resource: skills, namespace },
    { verbs: ['patch'], resource: `skills/status${group}`, namespace },
    { verbs: ['get'], resource: 'secrets', namespace },
    { verbs: ['create', 'patch'], resource: 'events.events.k8s.io', namespace },
  ];
}

/** What it may do where images are built. */
const buildRights = (namespace: string): Right[] => [
  { verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'], resource: 'jobs.batch', namespace },
  { verbs: ['create', 'delete'], resource: 'secrets', namespace },
  { verbs: ['list'], resource: 'pods', namespace },
  { verbs: ['get'], resource: 'pods/log', namespace },
];

/** What the chart gives the operator, as far as a missing right stops it. */
export function operatorRights({ namespace, buildNamespace, settings }: Home): Right[] {
  const given = [settings?.watchNamespaces ?? []].flat().flatMap((names) => names.split(','));
  const watched = given.length > 0 ? given : [''];
  return [
    ...watched.flatMap(watchedRights),
    { verbs: ['get', 'create', 'patch'], resource: 'leases.coordination.k8s.io', namespace },
    { verbs: ['get', 'list', 'create', 'patch', 'delete'], resource: 'configmaps', namespace },
    ...(settings?.build ? buildRights(buildNamespace) : []),
  ];
}

/** The operator's ServiceAccount has what the chart gives it. */
export const operators: Check = {
  name: 'operator rights',
  run: async ({ session, home }, signal) => {
    const account = home.deployment?.spec?.template?.spec?.serviceAccountName;
    if (account === undefined)
      return [
        warn(
          'operator rights',
          'not looked at: no Deployment of the operator tells its ServiceAccount',
          'name its namespace with --operator-namespace',
        ),
      ];
    const { namespace } = home;
    const user = `system:serviceaccount:${namespace}:${account}`;
    const groups = ['system:authenticated', 'system:serviceaccounts', `system:serviceaccounts:${namespace}`];
    try {
      const denied = await missing(session, operatorRights(home), { user, groups }, signal);
      if (denied.length === 0) return [ok('operator rights', `ServiceAccount ${account} may do what it has to`)];
      return [
        fail(
          'operator rights',
          `ServiceAccount ${account} may not: ${denied.join(', ')}`,
          'helm upgrade with rbac.create=true, or apply charts/skill-operator/rbac/',
        ),
      ];
    } catch (error) {
      if (!hasCode(error, 403)) throw error;
      return [
        warn(
          'operator rights',
          'not looked at: you may not create SubjectAccessReviews',
          'run this as an administrator of the cluster',
        ),
      ];
    }
  },
};
