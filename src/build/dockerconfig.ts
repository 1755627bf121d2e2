import { waiting } from '../base/errors.ts';
import { holdSecret } from '../base/redact.ts';

/** User and password for one registry. */
export interface RegistryCredential {
  username: string;
  password: string;
}

const HUB = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);
const MAX_BYTES = 256 * 1024;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Host and path of a key of `auths`, in the many spellings that tools write: `https://host/v1/`, `host`, `host/team`. */
function place(key: string): { host: string; path: string } {
  const bare = key.replace(/^https?:\/\//i, '').replace(/\/+$/, '');
  const slash = bare.indexOf('/');
  const host = (slash < 0 ? bare : bare.slice(0, slash)).toLowerCase();
  const path = slash < 0 ? '' : bare.slice(slash + 1);
  return { host: HUB.has(host) ? 'docker.io' : host, path: /^v[12]$/.test(path) ? '' : path };
}

const covers = (path: string, repository: string): boolean =>
  path === '' || repository === path || repository.startsWith(`${path}/`);

/** The entry for a host whose path is the longest that covers the repository. */
function entryFor(auths: Record<string, unknown>, host: string, repository: string): unknown {
  const wanted = place(host).host;
  const fitting = Object.entries(auths)
    .map(([key, entry]) => ({ ...place(key), entry }))
    .filter((one) => one.host === wanted && covers(one.path, repository))
    .sort((a, b) => b.path.length - a.path.length);
  return fitting[0]?.entry;
}

function credentialOf(entry: Record<string, unknown>): RegistryCredential | undefined {
  const { username, password, auth } = entry;
  for (const value of [password, auth, entry.identitytoken, entry.registrytoken]) {
    if (typeof value === 'string') holdSecret(value);
  }
  if (typeof username === 'string' && typeof password === 'string' && password !== '') return { username, password };
  if (typeof auth !== 'string') return undefined;
  const text = Buffer.from(auth, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon <= 0 || colon === text.length - 1) return undefined;
  const decoded = { username: text.slice(0, colon), password: text.slice(colon + 1) };
  holdSecret(decoded.password);
  return decoded;
}

/**
 * The credential for a repository in the text of a Docker config, as Secrets of type kubernetes.io/dockerconfigjson hold it.
 * `source` names the Secret or file in messages. Every secret value is registered with the redactor. Throws Waiting
 * `RegistryConfigInvalid` when the text is no such config, has nothing for the host, or relies on credential helpers, which are never run.
 */
export function registryCredential(
  text: string,
  wanted: { host: string; repository: string },
  source: string,
): RegistryCredential {
  const invalid = (what: string) => waiting('RegistryConfigInvalid', `${source} ${what}`);
  const create = `create it with kubectl create secret docker-registry --docker-server=${wanted.host}`;
  let config: unknown;
  if (text.length <= MAX_BYTES) {
    try {
      config = JSON.parse(text);
    } catch {
      // The parser's message would quote the text.
    }
  }
  if (!isRecord(config)) throw invalid(`is no Docker config of at most 256 KiB; ${create}`);
  const entry = isRecord(config.auths) ? entryFor(config.auths, wanted.host, wanted.repository) : undefined;
  const helpers = isRecord(config.credHelpers) ? Object.keys(config.credHelpers) : [];
  const helped =
    config.credsStore !== undefined || helpers.some((host) => place(host).host === place(wanted.host).host);
  const credential = isRecord(entry) ? credentialOf(entry) : undefined;
  if (credential) return credential;
  if (helped) {
    throw invalid(
      `leaves the password for ${wanted.host} to a credential helper, which is a program of your own machine; ${create}`,
    );
  }
  if (isRecord(entry)) throw invalid(`has an entry for ${wanted.host} without user and password; ${create}`);
  throw invalid(`has no entry for ${wanted.host}; ${create}`);
}
