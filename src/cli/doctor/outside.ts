import { ANNOTATIONS } from '../../api/labels.ts';
import { SECRETS } from '../../api/resources.ts';
import { messageOf, PolicyError, waiting } from '../../base/errors.ts';
import { holdSecret } from '../../base/redact.ts';
import { registryCredential } from '../../build/dockerconfig.ts';
import type { SandboxEngine } from '../../engine/port.ts';
import { hasCode } from '../../kube/errors.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Home } from '../cluster/home.ts';
import { type Bench, type Check, type Finding, fail, ok, warn } from './finding.ts';
import { complaints } from './seen.ts';

interface Secret extends KubeObject {
  data?: Record<string, string>;
}

/** A value with the hosts that its Secret is bound to (annotation skills.tfrobot.io/hosts). */
interface Bound {
  value: string;
  hosts: string[] | undefined;
}

async function secretValue({ session, home }: Bench, name: string, key: string, signal: AbortSignal): Promise<Bound> {
  const secret = await session.api.get<Secret>(SECRETS, home.namespace, name, signal);
  const encoded = secret?.data?.[key];
  if (encoded === undefined) {
    const what = secret ? `has no key "${key}"` : 'does not exist';
    throw waiting(
      'SecretNotFound',
      `Secret ${name} of namespace ${home.namespace} ${what}; create it as docs/guides/install.md shows`,
    );
  }
  const value = Buffer.from(encoded, 'base64').toString('utf8').trim();
  holdSecret(value);
  const hosts = secret?.metadata.annotations?.[ANNOTATIONS.hosts]?.split(',').map((host) => host.trim().toLowerCase());
  return { value, hosts };
}

/** Names that only pods can look up, or addresses that mean another machine there. */
const INSIDE = /(^|\.)svc(\.|$)|\.cluster\.local$|^localhost$|^127\.|^[^.:]+$/;
/** Reasons that a machine outside the cluster network sees although all is well. */
const WIRE = /^(StoreUnavailable|StoreTimeout|RegistryUnavailable|EngineUnavailable|RegistryConfigInvalid)$/;

const hostOf = (address: string): string =>
  URL.parse(address.includes('://') ? address : `https://${address}`)?.hostname ?? '';

/** Something outside the cluster that the operator needs. */
interface Target {
  check: string;
  /** URL or host:port. */
  address: string;
  /** The operator trusts an authority that is a file of its pod. */
  ownCA: boolean;
  /** Reasons that the operator gives when it is not well. */
  family: RegExp;
}

/** What a failure of a look from this machine means. Pure. */
export function judged({ check, address, ownCA }: Target, error: unknown, ready: number): Finding {
  const message = messageOf(error);
  if (hasCode(error, 403))
    return warn(
      check,
      `not looked at: its Secret may not be read by you (${address})`,
      'run this as an administrator of the namespace',
    );
  const wire = error instanceof PolicyError && WIRE.test(error.reason);
  const serves = ready > 0 ? `; the operator complains of nothing and ${ready} Skills are Ready` : '';
  if (wire && (INSIDE.test(hostOf(address)) || ownCA)) {
    const why = ownCA ? 'its certificate is checked with a file of the pod' : 'it has an address inside the cluster';
    return warn(
      check,
      `${address} cannot be checked from this machine, ${why}${serves}`,
      'run skillctl doctor in a pod of the cluster, or trust the conditions of the Skills',
    );
  }
  return fail(check, message, 'compare the settings of the operator with the server: docs/guides/configuration.md');
}

/** The operator's own word first, then a look from here. */
async function looked(
  { seen }: Bench,
  target: Target,
  look: () => Promise<string>,
  signal: AbortSignal,
): Promise<Finding[]> {
  const found = complaints(target.check, target.family, seen);
  try {
    const text = await look();
    return found.length > 0 ? found : [ok(target.check, text)];
  } catch (error) {
    signal.throwIfAborted();
    return found.length > 0 ? found : [judged(target, error, seen.ready)];
  }
}

const unknown = (check: string, { settingsFrom }: Home): Finding[] => [
  warn(
    check,
    `not looked at, the settings are not known: ${settingsFrom}`,
    'name the namespace with --operator-namespace, or the settings file with --config',
  ),
];

/** Secret and keys of the S3 key, from the environment of the operator's pod. */
function storeSecret({ deployment }: Home): { secret: string; access: string; secretKey: string } | undefined {
  const env = deployment?.spec?.template?.spec?.containers?.flatMap((one) => one.env ?? []) ?? [];
  const refOf = (name: string) => env.find((one) => one.name === name)?.valueFrom?.secretKeyRef;
  const [access, secret] = [refOf('SKILL_OPERATOR_STORE_ACCESS_KEY'), refOf('SKILL_OPERATOR_STORE_SECRET_KEY')];
  if (!access?.name || !access.key || !secret?.key) return undefined;
  return { secret: access.name, access: access.key, secretKey: secret.key };
}

/** The bucket answers to the operator's key. */
export const store: Check = {
  name: 'store',
  run: async (bench, signal) => {
    const { home, seen } = bench;
    const { endpoint, bucket, region = 'us-east-1', caFile } = home.settings?.store ?? {};
    const family = /^Store/;
    if (!endpoint || !bucket) return [...complaints('store', family, seen), ...unknown('store', home)];
    const target = { check: 'store', address: endpoint, ownCA: caFile !== undefined, family };
    const look = async () => {
      const names = storeSecret(home);
      if (!names) throw waiting('SecretNotFound', 'the pod of the operator does not take the S3 key from a Secret');
      const [accessKey, secretKey] = await Promise.all(
        [names.access, names.secretKey].map((key) => secretValue(bench, names.secret, key, signal)),
      );
      const host = hostOf(endpoint);
      if (secretKey?.hosts && !secretKey.hosts.includes(host))
        throw waiting(
          'SecretHostNotAllowed',
          `Secret ${names.secret} may not be sent to ${host}: its annotation ${ANNOTATIONS.hosts} names other hosts`,
        );
      const { S3ObjectStore } = await import('../../store/s3.ts');
      const s3 = new S3ObjectStore({
        endpoint,
        bucket,
        region,
        accessKey: accessKey?.value ?? '',
        secretKey: secretKey?.value ?? '',
      });
      try {
        await s3.check(signal);
      } finally {
        s3.close();
      }
      return `bucket ${bucket} at ${endpoint} answers to the key of Secret ${names.secret}`;
    };
    return looked(bench, target, look, signal);
  },
};

/** The image registry answers to the operator's credential. */
export const registry: Check = {
  name: 'registry',
  run: async (bench, signal) => {
    const { home } = bench;
    if (!home.settings) return unknown('registry', home);
    const { host, insecure, credentialSecret, caFile } = home.settings.build?.registry ?? {};
    if (!host) return [ok('registry', 'image builds are off (config.build)')];
    const target = { check: 'registry', address: host, ownCA: caFile !== undefined, family: /^Registry/ };
    const look = async () => {
      const { HttpRegistry } = await import('../../build/registry.ts');
      const credential = async (repository: string, inner: AbortSignal) => {
        const { value, hosts } = await secretValue(bench, credentialSecret ?? '', '.dockerconfigjson', inner);
        return { ...registryCredential(value, { host, repository }, `Secret "${credentialSecret}"`), hosts };
      };
      const client = new HttpRegistry({ host, insecure, credential: credentialSecret ? credential : undefined });
      try {
        await client.ping(signal);
      } finally {
        await client.close();
      }
      return `${host} answers${credentialSecret ? ` to the credential of Secret ${credentialSecret}` : ''}`;
    };
    return looked(bench, target, look, signal);
  },
};

async function clientOf(
  name: 'cubesandbox' | 'e2b',
  url: string,
  key: ((signal: AbortSignal) => Promise<Bound>) | undefined,
): Promise<SandboxEngine> {
  if (name === 'e2b') return new (await import('../../engine/e2b.ts')).E2BEngine({ url, key });
  return new (await import('../../engine/cubesandbox.ts')).CubeSandboxEngine({ url, key });
}

async function engine(bench: Bench, name: 'cubesandbox' | 'e2b', signal: AbortSignal): Promise<Finding[]> {
  const { url, keySecret, caFile } = bench.home.settings?.engines?.[name] ?? {};
  if (!url) return [];
  const check = `engine ${name}`;
  const target = { check, address: url, ownCA: caFile !== undefined, family: /^Engine/ };
  const look = async () => {
    const key = keySecret ? (inner: AbortSignal) => secretValue(bench, keySecret, 'apiKey', inner) : undefined;
    // Told apart from a key that is refused.
    await key?.(signal);
    const { reachable, authenticated, message } = await (await clientOf(name, url, key)).health(signal);
    if (!reachable) throw waiting('EngineUnavailable', message ?? `${url} does not answer`);
    if (!authenticated) throw waiting('EngineAuthFailed', message ?? `${url} refuses the key`);
    return `${url} answers${keySecret ? ` to the key of Secret ${keySecret}` : ''}`;
  };
  return looked(bench, target, look, signal);
}

/** Every engine of the settings answers to its key. */
export const engines: Check = {
  name: 'engines',
  run: async (bench, signal) => {
    if (!bench.home.settings) return unknown('engines', bench.home);
    const found = (
      await Promise.all((['cubesandbox', 'e2b'] as const).map((name) => engine(bench, name, signal)))
    ).flat();
    return found.length > 0 ? found : [ok('engines', 'none is configured; skills that need one wait')];
  },
};
