import packageJson from '../../../package.json' with { type: 'json' };
import { MARKETPLACE_SOURCES, SKILLS } from '../../api/resources.ts';
import { hasCode } from '../../kube/errors.ts';
import type { Condition, KubeObject, Resource } from '../../kube/types.ts';
import type { Session } from '../cluster/session.ts';
import { type Check, type Finding, fail, ok, warn } from './finding.ts';

const CRDS: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
};
/** Written by the chart: 1.2.3 is 1002003. */
const REVISION = 'skills.tfrobot.io/crd-revision';
const INSTALL = 'helm upgrade --install skill-operator …, or kubectl apply --server-side -f crds/';

/** The release as the chart writes it on CRDs. */
function revisionOf(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number);
  return major * 1_000_000 + minor * 1000 + patch;
}

interface Crd extends KubeObject {
  spec?: { versions?: { name?: string; served?: boolean }[] };
  status?: { conditions?: Condition[] };
}

/** What is to be said of one CRD. Pure. */
export function crdFinding(name: string, crd: Crd | undefined, release: string): Finding {
  const check = 'CRDs';
  if (!crd) return fail(check, `${name} is not installed`, INSTALL);
  if (crd.metadata.deletionTimestamp !== undefined)
    return fail(
      check,
      `${name} is being deleted, and every object of its kind with it`,
      'skillctl uninstall shows what is left',
    );
  const established = crd.status?.conditions?.find(({ type }) => type === 'Established')?.status === 'True';
  if (!established) return fail(check, `${name} is not served by the API server`, `kubectl describe crd ${name}`);
  const served = crd.spec?.versions?.filter((one) => one.served).map((one) => one.name) ?? [];
  if (!served.includes(SKILLS.version)) {
    const message = `${name} serves ${served.join(', ') || 'no version'}, this skillctl knows ${SKILLS.version}`;
    return fail(check, message, 'use the skillctl of the installed release');
  }
  const installed = Number(crd.metadata.annotations?.[REVISION] ?? Number.NaN);
  const own = revisionOf(release);
  if (installed > own)
    return warn(
      check,
      `${name} is of a newer release than this skillctl ${release}`,
      'use the skillctl of that release',
    );
  if (installed < own)
    return warn(check, `${name} is of an older release than this skillctl ${release}`, 'helm upgrade skill-operator …');
  return ok(check, `${name} serves ${SKILLS.version}${Number.isNaN(installed) ? '' : ` of release ${release}`}`);
}

async function crd(session: Session, resource: Resource, signal: AbortSignal): Promise<Finding> {
  const name = `${resource.plural}.${resource.group}`;
  try {
    return crdFinding(name, await session.api.get<Crd>(CRDS, '', name, signal), packageJson.version);
  } catch (error) {
    if (!hasCode(error, 403)) throw error;
    // Who may not read CRDs can still see whether the kind is there.
    await session.api.listPage(resource, { namespace: session.namespace }, { limit: 1 }, signal);
    return ok('CRDs', `${name} is served (you may not read the CRD itself)`);
  }
}

/** The API server answers, and which release it is. */
export const apiServer: Check = {
  name: 'API server',
  run: async ({ session }, signal) => {
    const version = await session.api.version(signal);
    const context = session.context === undefined ? '' : `, context ${session.context}`;
    return [ok('API server', `${version} at ${session.server}${context}`)];
  },
};

/** Both CRDs are there, served, and of this release. */
export const crds: Check = {
  name: 'CRDs',
  run: ({ session }, signal) => Promise.all([MARKETPLACE_SOURCES, SKILLS].map((one) => crd(session, one, signal))),
};
