import { CONFIG_MAPS } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { KubeObject, Resource } from '../../kube/types.ts';
import { listAll } from './objects.ts';
import type { Session } from './session.ts';

/** Namespaces where nothing else is said. */
export const OPERATOR_NAMESPACE = 'skill-operator-system';
const BUILD_NAMESPACE = 'skill-operator-builds';

const DEPLOYMENTS: Resource = {
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  namespaced: true,
};

const CONTROLLER = 'app.kubernetes.io/part-of=skill-operator,app.kubernetes.io/component=controller';

interface SecretKey {
  name?: string;
  key?: string;
}

/** A Deployment, as far as it is read here. */
export interface Deployment extends KubeObject {
  spec?: {
    replicas?: number;
    template?: {
      spec?: {
        serviceAccountName?: string;
        volumes?: { name?: string; configMap?: { name?: string } }[];
        containers?: { env?: { name?: string; valueFrom?: { secretKeyRef?: SecretKey } }[] }[];
      };
    };
  };
  status?: { readyReplicas?: number };
}

/** The operator's settings file, unchecked: the operator itself has refused a wrong one. */
export interface Settings {
  /** A list, or names with commas between them; absent: all. */
  watchNamespaces?: string[] | string;
  store?: { endpoint?: string; bucket?: string; region?: string; prefix?: string; caFile?: string };
  build?: {
    namespace?: string;
    registry?: { host?: string; insecure?: boolean; credentialSecret?: string; pushSecret?: string; caFile?: string };
  };
  engines?: Partial<Record<'cubesandbox' | 'e2b', { url?: string; keySecret?: string; caFile?: string }>>;
}

/** Where the operator lives and how it is set. */
export interface Home {
  namespace: string;
  /** Absent: none was found, or it may not be read. */
  deployment?: Deployment;
  settings?: Settings;
  /** Where the settings come from, or why there are none. */
  settingsFrom: string;
  buildNamespace: string;
}

/** Flags that name what cannot always be found out. */
export interface HomeFlags {
  operatorNamespace?: string;
  buildNamespace?: string;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The mapping in a settings file; undefined when it is none. */
export async function parseSettings(text: string): Promise<Settings | undefined> {
  const { parse } = await import('yaml');
  try {
    const value: unknown = parse(text);
    return isRecord(value) ? (value as Settings) : undefined;
  } catch {
    // The parser's message would quote the text.
    return undefined;
  }
}

async function deploymentIn(session: Session, namespace: string | undefined, signal: AbortSignal) {
  const scope = { labelSelector: CONTROLLER, ...(namespace === undefined ? {} : { namespace }) };
  const found = await listAll<Deployment>(session, DEPLOYMENTS, scope, signal);
  return found[0];
}

async function settingsOf(
  { api }: Session,
  deployment: Deployment | undefined,
  signal: AbortSignal,
): Promise<Pick<Home, 'settings' | 'settingsFrom'>> {
  if (!deployment) return { settingsFrom: 'no Deployment of the operator was found' };
  const { namespace = '' } = deployment.metadata;
  const volumes = deployment.spec?.template?.spec?.volumes ?? [];
  const name = volumes.find((volume) => volume.name === 'config')?.configMap?.name;
  if (name === undefined) return { settingsFrom: `Deployment ${deployment.metadata.name} has no volume "config"` };
  const map = await api.get<KubeObject & { data?: Record<string, string> }>(CONFIG_MAPS, namespace, name, signal);
  const settings = await parseSettings(map?.data?.['config.yaml'] ?? '');
  const from = `ConfigMap ${name} of namespace ${namespace}`;
  return settings ? { settings, settingsFrom: from } : { settingsFrom: `${from} has no usable key "config.yaml"` };
}

/** Finds the operator: by its Deployment, else by what the flags and the defaults say. Never rejects for what may not be read. */
export async function findHome(session: Session, flags: HomeFlags, signal: AbortSignal): Promise<Home> {
  let deployment: Deployment | undefined;
  let found: Pick<Home, 'settings' | 'settingsFrom'>;
  try {
    deployment = await deploymentIn(session, flags.operatorNamespace, signal);
    found = await settingsOf(session, deployment, signal);
  } catch (error) {
    signal.throwIfAborted();
    found = { settingsFrom: messageOf(error) };
  }
  const namespace = flags.operatorNamespace ?? deployment?.metadata.namespace ?? OPERATOR_NAMESPACE;
  const buildNamespace = flags.buildNamespace ?? found.settings?.build?.namespace ?? BUILD_NAMESPACE;
  return { namespace, ...(deployment ? { deployment } : {}), ...found, buildNamespace };
}
