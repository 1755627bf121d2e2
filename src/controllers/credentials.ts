import { ANNOTATIONS } from '../api/labels.ts';
import { SECRETS } from '../api/resources.ts';
import type { Clock } from '../base/clock.ts';
import { waiting } from '../base/errors.ts';
import { holdSecret } from '../base/redact.ts';
import type { KubeApi, KubeObject } from '../kube/types.ts';
import type { GitCredential, GitHubApp, GitProxy } from '../marketplace/port.ts';

/** A core/v1 Secret as the API sends it. */
interface Secret extends KubeObject {
  data?: Record<string, string>;
}

const ACCEPTED =
  'username and password, bearerToken, identity and known_hosts, githubAppID with githubAppPrivateKey and githubAppInstallationID or githubAppInstallationOwner, or ca.crt';
const PROXY_ACCEPTED = 'address, username and password';
const MAX_VALUE_BYTES = 64 * 1024;
/** A rotated Secret counts after this time even when nothing else happens. */
const TTL_MS = 30_000;

/** These are public; everything else is registered with the redactor. */
const PUBLIC_KEYS = new Set([
  'ca.crt',
  'known_hosts',
  'username',
  'githubAppID',
  'githubAppInstallationID',
  'githubAppInstallationOwner',
  'githubAppBaseURL',
]);

function decode(secret: Secret, isPublic: (key: string) => boolean): Map<string, string> {
  const values = new Map<string, string>();
  for (const [key, encoded] of Object.entries(secret.data ?? {})) {
    const bytes = Buffer.from(encoded, 'base64');
    const value = bytes.toString('utf8');
    if (!isPublic(key)) holdSecret(value);
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

type Fail = (what: string) => Error;

function appOf(values: Map<string, string>, fail: Fail): GitHubApp | undefined {
  if (![...values.keys()].some((key) => key.startsWith('githubApp'))) return undefined;
  const value = (key: string) => line(values.get(key))?.trim() || undefined;
  const [appID, privateKey] = [value('githubAppID'), value('githubAppPrivateKey')];
  if (!appID) throw fail('has keys of a GitHub App but no githubAppID');
  if (!privateKey) throw fail('has githubAppID but no githubAppPrivateKey');
  const [installationID, owner] = [value('githubAppInstallationID'), value('githubAppInstallationOwner')];
  if (!installationID && !owner) {
    throw fail('has githubAppID but neither githubAppInstallationID nor githubAppInstallationOwner');
  }
  if (values.has('password') || values.has('bearerToken')) {
    throw fail('has keys of a GitHub App and a password or bearerToken beside them; keep one of the two');
  }
  return { appID, installationID, owner, privateKey, baseURL: value('githubAppBaseURL') };
}

/**
 * The credential in a Secret, in the keys that Flux uses. Every secret value is registered with the redactor first.
 * Waiting SecretInvalid names the missing key.
 */
export function credentialOf(secret: Secret): GitCredential {
  const values = decode(secret, (key) => PUBLIC_KEYS.has(key));
  const name = secret.metadata.name;
  const invalid = (what: string) => waiting('SecretInvalid', `Secret "${name}" ${what}; its keys can be ${ACCEPTED}`);
  const [username, password] = [line(values.get('username')), line(values.get('password'))];
  const [identity, knownHosts] = [values.get('identity'), values.get('known_hosts')];
  const githubApp = appOf(values, invalid);
  if (identity && !knownHosts) throw invalid('has identity but no known_hosts; ssh-keyscan <host> prints it');
  if (username !== undefined && password === undefined && !identity && !githubApp)
    throw invalid('has username but no password');
  if (password !== undefined && username === undefined && !identity) throw invalid('has password but no username');
  const credential: GitCredential = {
    username,
    password,
    bearerToken: line(values.get('bearerToken')),
    identity,
    knownHosts,
    caCert: values.get('ca.crt'),
    githubApp,
    hosts: hostsOf(secret),
  };
  const { hosts, ...given } = credential;
  if (Object.values(given).every((value) => !value)) throw invalid('has none of the keys that hold a credential');
  return credential;
}

/** The proxy in a Secret, in the keys that Flux uses. Waiting SecretInvalid without an address. */
export function proxyOf(secret: Secret): GitProxy {
  const values = decode(secret, (key) => key === 'username' || key === 'address');
  const value = (key: string) => line(values.get(key)) || undefined;
  const address = value('address');
  if (!address) {
    throw waiting(
      'SecretInvalid',
      `Secret "${secret.metadata.name}" of proxySecretRef has no address, such as http://proxy.example.com:3128; its keys are ${PROXY_ACCEPTED}`,
    );
  }
  return { address, username: value('username'), password: value('password'), hosts: hostsOf(secret) };
}

function hostsOf(secret: Secret): string[] | undefined {
  const text = secret.metadata.annotations?.[ANNOTATIONS.hosts];
  return text
    ?.split(',')
    .map((host) => host.trim().toLowerCase())
    .filter(Boolean);
}

/** Reads Secrets by GET on use; a value is reused for half a minute so that many Skills of one source cost one GET. */
class SecretReader<T> {
  readonly #kube: KubeApi;
  readonly #clock: Clock;
  readonly #parse: (secret: Secret) => T;
  readonly #cache = new Map<string, { at: number; value: T }>();

  constructor(kube: KubeApi, clock: Clock, parse: (secret: Secret) => T) {
    this.#kube = kube;
    this.#clock = clock;
    this.#parse = parse;
  }

  /** undefined without a reference. `fresh`: read it now. Waiting SecretNotFound when it is not there. */
  async read(
    namespace: string,
    ref: { name: string } | undefined,
    options: { fresh: boolean },
    signal: AbortSignal,
  ): Promise<T | undefined> {
    if (!ref) return undefined;
    const key = `${namespace}/${ref.name}`;
    const known = this.#cache.get(key);
    if (known && !options.fresh && this.#clock.monotonic() - known.at < TTL_MS) return known.value;
    this.#cache.delete(key);
    const secret = await this.#kube.get<Secret>(SECRETS, namespace, ref.name, signal);
    if (!secret) {
      throw waiting(
        'SecretNotFound',
        `Secret "${ref.name}" does not exist in namespace "${namespace}"; create it with kubectl -n ${namespace} create secret generic ${ref.name} …`,
      );
    }
    const value = this.#parse(secret);
    this.#cache.set(key, { at: this.#clock.monotonic(), value });
    return value;
  }
}

/** Reads credential Secrets (`secretRef`). */
export class CredentialReader extends SecretReader<GitCredential> {
  constructor(kube: KubeApi, clock: Clock) {
    super(kube, clock, credentialOf);
  }
}

/** Reads proxy Secrets (`proxySecretRef`). */
export class ProxyReader extends SecretReader<GitProxy> {
  constructor(kube: KubeApi, clock: Clock) {
    super(kube, clock, proxyOf);
  }
}
