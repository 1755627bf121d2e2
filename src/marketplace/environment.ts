import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { waiting } from '../base/errors.ts';
import { holdSecret } from '../base/redact.ts';
import type { GitCredential } from './port.ts';
import { type ProxyRoute, withUserinfo } from './proxy.ts';
import { keyProblem } from './sshkey.ts';
import type { RemoteUrl } from './url.ts';

/** Where Git programs are looked for; the operator's own environment never reaches them. */
const PROGRAM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin';
const CONNECT_TIMEOUT_S = 15;
const MAX_VALUE = 1024 * 1024;

/** Git settings of every process: nothing of a repository is run, and memory stays bounded. */
const BASE_CONFIG: [string, string][] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.symlinks', 'false'],
  ['core.packedGitLimit', '256m'],
  ['core.deltaBaseCacheLimit', '32m'],
  ['core.bigFileThreshold', '16m'],
  ['pack.threads', '1'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['fetch.unpackLimit', '1'],
  ['fetch.recurseSubmodules', 'false'],
  ['credential.helper', ''],
  ['protocol.version', '2'],
  ['http.followRedirects', 'false'],
  ['http.lowSpeedLimit', '1'],
  ['http.lowSpeedTime', '300'],
];

/** Environment and files of one Git process. */
export interface GitEnvironment extends AsyncDisposable {
  env: Record<string, string>;
  /** True when the request carries credentials. */
  authenticated: boolean;
}

function configVariables(config: [string, string][]): Record<string, string> {
  const env: Record<string, string> = { GIT_CONFIG_COUNT: String(config.length) };
  for (const [index, [key, value]] of config.entries()) {
    env[`GIT_CONFIG_KEY_${index}`] = key;
    env[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return env;
}

/**
 * The environment of a Git process without credentials, built from nothing; it may not touch the network.
 * @param home an empty private directory.
 */
export function localEnvironment(home: string): Record<string, string> {
  return {
    PATH: PROGRAM_PATH,
    HOME: home,
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_NO_LAZY_FETCH: '1',
    // The empty list of transports would mean the default ones.
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_LFS_SKIP_SMUDGE: '1',
    ...configVariables(BASE_CONFIG),
  };
}

const invalid = (why: string) => waiting('SecretInvalid', why);

/** `echo token | base64` leaves a newline behind that nobody means. */
function value(name: string, text: string | undefined): string | undefined {
  const clean = text?.replace(/\r?\n$/, '');
  if (clean === undefined || clean === '') return undefined;
  if (clean.length > MAX_VALUE) throw invalid(`${name} in the Secret is larger than 1 MiB: store the value itself`);
  if (/\p{Cc}/u.test(clean))
    throw invalid(`${name} in the Secret contains control characters: store the value alone, on one line`);
  return clean;
}

function authorization(credential: GitCredential): string | undefined {
  const token = value('bearerToken', credential.bearerToken);
  if (token !== undefined) {
    holdSecret(token);
    return `Authorization: Bearer ${token}`;
  }
  const password = value('password', credential.password);
  const username = value('username', credential.username) ?? '';
  if (password === undefined) {
    if (username !== '') throw invalid('the Secret has username but no password: add the key password');
    return undefined;
  }
  if (username.includes(':')) throw invalid('username in the Secret contains ":": correct it');
  const basic = Buffer.from(`${username}:${password}`).toString('base64');
  holdSecret(password);
  holdSecret(basic);
  return `Authorization: Basic ${basic}`;
}

/**
 * Refuses to send a Secret to a host outside of its own list (annotation skills.tfrobot.io/hosts; entries `host` or `host:port`).
 * @throws PolicyError `SecretHostNotAllowed` (Waiting).
 */
export function checkHosts(remote: Pick<RemoteUrl, 'host' | 'port'>, credential: GitCredential): void {
  if (credential.hosts === undefined) return;
  const wanted = [remote.host, `${remote.host}:${remote.port}`];
  if (credential.hosts.some((host) => wanted.includes(host.trim().toLowerCase()))) return;
  throw waiting(
    'SecretHostNotAllowed',
    `the Secret may not be sent to ${remote.host}: add the host to its annotation skills.tfrobot.io/hosts, or use another Secret`,
  );
}

const shellQuoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

function sshCommand(dir: string): string {
  const options = [
    'BatchMode=yes',
    'StrictHostKeyChecking=yes',
    `UserKnownHostsFile=${shellQuoted(join(dir, 'known_hosts'))}`,
    'GlobalKnownHostsFile=/dev/null',
    'UpdateHostKeys=no',
    'IdentitiesOnly=yes',
    'IdentityAgent=none',
    'PasswordAuthentication=no',
    'ClearAllForwardings=yes',
    'ForwardAgent=no',
    `ConnectTimeout=${CONNECT_TIMEOUT_S}`,
    'ServerAliveInterval=15',
    'ServerAliveCountMax=4',
  ];
  return [
    'ssh',
    '-F',
    'none',
    '-i',
    shellQuoted(join(dir, 'identity')),
    ...options.map((option) => `-o${option}`),
  ].join(' ');
}

/** The files a credential needs, checked before anything is written. */
function filesOf(remote: RemoteUrl, credential: GitCredential): [string, string][] {
  if (remote.protocol !== 'ssh') {
    const ca = credential.caCert;
    if (remote.protocol === 'http' || ca === undefined) return [];
    if (!ca.includes('-----BEGIN CERTIFICATE-----'))
      throw invalid('ca.crt in the Secret holds no PEM certificate: store the CA certificate itself');
    return [['ca.crt', `${ca.trim()}\n`]];
  }
  const { identity, knownHosts } = credential;
  if (!identity?.trim())
    throw invalid('an ssh URL needs the key identity (a private key) in the Secret of spec.secretRef: add it');
  holdSecret(identity);
  const problem = keyProblem(identity);
  if (problem) throw invalid(`identity in the Secret ${problem}`);
  if (!knownHosts?.trim()) {
    throw invalid(
      `an ssh URL needs the key known_hosts in the Secret: add the output of "ssh-keyscan -p ${remote.port} ${remote.host}" after comparing it with the key the provider publishes`,
    );
  }
  return [
    ['identity', `${identity.replaceAll('\r\n', '\n').trim()}\n`],
    ['known_hosts', `${knownHosts.replaceAll('\r\n', '\n').trim()}\n`],
  ];
}

async function writePrivate(root: string, files: [string, string][]): Promise<string> {
  const dir = await mkdtemp(join(root, 'call-'));
  try {
    for (const [name, text] of files) await writeFile(join(dir, name), text, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
  return dir;
}

/** How one Git process reaches its remote. */
export interface Connection {
  remote: RemoteUrl;
  credential?: GitCredential | undefined;
  proxy?: ProxyRoute | undefined;
  /** PEM file of the authorities that count where the Secret brings none; undefined: those that Git comes with. */
  caFile?: string | undefined;
}

function proxyConfig(proxy: ProxyRoute | undefined, caFile: string | undefined): [string, string][] {
  if (!proxy) return [];
  const authority: [string, string][] = caFile ? [['http.proxySSLCAInfo', caFile]] : [];
  return [['http.proxy', withUserinfo(proxy)], ...authority];
}

/**
 * Environment of one Git process that talks to `remote`; dispose it to remove key files.
 * Secrets go into private files (0600) and into GIT_CONFIG_VALUE_n of the child's environment, never into its arguments.
 * @param root a private directory with an empty `home` inside.
 * @throws PolicyError `SecretInvalid`, `SecretHostNotAllowed` (Waiting).
 */
export async function remoteEnvironment(
  root: string,
  { remote, credential, proxy, caFile }: Connection,
  signal: AbortSignal,
): Promise<GitEnvironment> {
  signal.throwIfAborted();
  if (credential) checkHosts(remote, credential);
  const files = filesOf(remote, credential ?? {});
  const header = credential && remote.protocol !== 'ssh' ? authorization(credential) : undefined;
  const dir = files.length > 0 ? await writePrivate(root, files) : undefined;
  const config: [string, string][] = [...BASE_CONFIG, ...proxyConfig(proxy, caFile)];
  // Bound to this origin, so that no other address of the same process could ever get it.
  const origin = `${remote.protocol}://${remote.host}:${remote.port}/`;
  if (header) config.push([`http.${origin}.extraHeader`, header]);
  const env: Record<string, string> = {
    ...localEnvironment(join(root, 'home')),
    GIT_ALLOW_PROTOCOL: 'https:http:ssh',
    ...configVariables(config),
  };
  if (dir && remote.protocol === 'ssh')
    Object.assign(env, { GIT_SSH_COMMAND: sshCommand(dir), GIT_SSH_VARIANT: 'ssh' });
  const authorities = dir ? join(dir, 'ca.crt') : caFile;
  if (authorities && remote.protocol === 'https') env.GIT_SSL_CAINFO = authorities;
  return {
    env,
    authenticated: header !== undefined || remote.protocol === 'ssh',
    [Symbol.asyncDispose]: async () => {
      if (dir) await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Identifies a credential by its values, so that mirrors are never shared across credentials; hex, not reversible. */
export function credentialHash(credential: GitCredential | undefined): string {
  const { username, password, bearerToken, identity, knownHosts, caCert, githubApp } = credential ?? {};
  const { appID, installationID, owner, privateKey, baseURL } = githubApp ?? {};
  const ofApp = [appID, installationID, owner, privateKey, baseURL];
  const values = [username, password, bearerToken, identity, knownHosts, caCert, ...ofApp].map((text) => text ?? null);
  return createHash('sha256').update(JSON.stringify(values)).digest('hex');
}
