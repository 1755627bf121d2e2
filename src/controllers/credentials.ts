import { ANNOTATIONS } from '../api/labels.ts';
import { SECRETS } from '../api/resources.ts';
import type { Clock } from '../base/clock.ts';
import { stalled, waiting } from '../base/errors.ts';
import { holdSecret } from '../base/redact.ts';
import type { KubeApi, KubeObject } from '../kube/types.ts';
import type { GitCredential } from '../marketplace/port.ts';

/** A core/v1 Secret as the API sends it. */
interface Secret extends KubeObject {
  data?: Record<string, string>;
}

const ACCEPTED = 'username and password, bearerToken, identity and known_hosts, or ca.crt';
const MAX_VALUE_BYTES = 64 * 1024;
/** A rotated Secret counts after this time even when nothing else happens. */
const TTL_MS = 30_000;

/** `ca.crt` and `known_hosts` are public; everything else is registered with the redactor. */
const PUBLIC_KEYS = new Set(['ca.crt', 'known_hosts', 'username']);

function decode(secret: Secret): Map<string, string> {
  const values = new Map<string, string>();
  for (const [key, encoded] of Object.entries(secret.data ?? {})) {
    const bytes = Buffer.from(encoded, 'base64');
    const value = bytes.toString('utf8');
    if (!PUBLIC_KEYS.has(key)) holdSecret(value);
    if (bytes.length > MAX_VALUE_BYTES) {
      throw waiting(
        'SecretInvalid',
        `key "${key}" of Secret "${secret.metadata.name}" is larger than 64 KiB; check what was stored in it`,
      );
    }
    values.set(key, value);
  }
  return values;
}

/** Editors and `echo` leave a final newline that no server accepts in a header. */
const line = (value: string | undefined) => value?.replace(/[\r\n]+$/, '');

/**
 * The credential in a Secret, in the keys that Flux uses. Every secret value is registered with the redactor first.
 * Waiting SecretInvalid names the missing key; Stalled NotSupportedYet for the keys of a GitHub App.
 */
export function credentialOf(secret: Secret): GitCredential {
  const values = decode(secret);
  const name = secret.metadata.name;
  const invalid = (what: string) => waiting('SecretInvalid', `Secret "${name}" ${what}; its keys can be ${ACCEPTED}`);
  const app = [...values.keys()].find((key) => key.startsWith('githubApp'));
  if (app) {
    throw stalled(
      'NotSupportedYet',
      `Secret "${name}" has key "${app}": GitHub Apps are not supported yet; use username and password with a token`,
    );
  }
  const [username, password] = [line(values.get('username')), line(values.get('password'))];
  const [identity, knownHosts] = [values.get('identity'), values.get('known_hosts')];
  if (identity && !knownHosts) throw invalid('has identity but no known_hosts; ssh-keyscan <host> prints it');
  if (username !== undefined && password === undefined && !identity) throw invalid('has username but no password');
  if (password !== undefined && username === undefined && !identity) throw invalid('has password but no username');
  const credential: GitCredential = {
    username,
    password,
    bearerToken: line(values.get('bearerToken')),
    identity,
    knownHosts,
    caCert: values.get('ca.crt'),
    hosts: hostsOf(secret),
  };
  const { hosts, ...given } = credential;
  if (Object.values(given).every((value) => !value)) throw invalid('has none of the keys that hold a credential');
  return credential;
}

function hostsOf(secret: Secret): string[] | undefined {
  const text = secret.metadata.annotations?.[ANNOTATIONS.hosts];
  return text
    ?.split(',')
    .map((host) => host.trim().toLowerCase())
    .filter(Boolean);
}

/** Reads credentials by GET on use; a value is reused for half a minute so that many Skills of one source cost one GET. */
export class CredentialReader {
  readonly #kube: KubeApi;
  readonly #clock: Clock;
  readonly #cache = new Map<string, { at: number; credential: GitCredential }>();

  constructor(kube: KubeApi, clock: Clock) {
    this.#kube = kube;
    this.#clock = clock;
  }

  /** undefined without a reference. `fresh`: read it now. Waiting SecretNotFound when it is not there. */
  async read(
    namespace: string,
    ref: { name: string } | undefined,
    options: { fresh: boolean },
    signal: AbortSignal,
  ): Promise<GitCredential | undefined> {
    if (!ref) return undefined;
    const key = `${namespace}/${ref.name}`;
    const known = this.#cache.get(key);
    if (known && !options.fresh && this.#clock.monotonic() - known.at < TTL_MS) return known.credential;
    this.#cache.delete(key);
    const secret = await this.#kube.get<Secret>(SECRETS, namespace, ref.name, signal);
    if (!secret) {
      throw waiting(
        'SecretNotFound',
        `Secret "${ref.name}" does not exist in namespace "${namespace}"; create it with kubectl -n ${namespace} create secret generic ${ref.name} …`,
      );
    }
    const credential = credentialOf(secret);
    this.#cache.set(key, { at: this.#clock.monotonic(), credential });
    return credential;
  }
}
