import { spawn } from 'node:child_process';
import { createPrivateKey, randomBytes, sign } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { execOk } from '../../cluster/exec.ts';
import { ensurePrograms } from '../../cluster/packages.ts';
import { createAuthority, createServerCert } from '../../cluster/pki.ts';
import { listen } from '../../support/listen.ts';

/** Made anew for each use: the module outlives many test files. */
const deadline = () => AbortSignal.timeout(600_000);
const REGISTRY = 'docker-registry';
const SERVICE = 'test-registry';
const ISSUER = 'test-issuer';

/** A registry of its own for one test file. */
export interface TestRegistry extends AsyncDisposable {
  /** `<host>:<port>`. */
  host: string;
  username: string;
  password: string;
  /** PEM file of the authority, with `tls`. */
  caFile: string | undefined;
  /** Where it keeps its files. */
  dataDir: string;
  /** Requests to its token service, with `auth: 'token'`. */
  readonly tokenRequests: { authorization: string | undefined; url: string }[];
}

interface Options {
  auth?: 'basic' | 'token';
  tls?: boolean;
  deletes?: boolean;
}

const say = (line: string) => process.stderr.write(`[registry] ${line}\n`);

/** Installs docker-registry, htpasswd and skopeo where a program is missing. */
const ensureRegistryPrograms = (): Promise<void> =>
  ensurePrograms(
    [
      { probe: [REGISTRY, '--version'], debianPackage: 'docker-registry' },
      { probe: ['htpasswd', '-?'], debianPackage: 'apache2-utils' },
      { probe: ['skopeo', '--version'], debianPackage: 'skopeo' },
    ],
    say,
    deadline(),
  );

const base64url = (value: string | Buffer) => Buffer.from(value).toString('base64url');

/** What a token service answers, signed as the registry wants it. Source: distribution, token authentication implementation. */
function tokenFor(scopes: readonly string[], cert: string, key: string): string {
  const now = Math.floor(Date.now() / 1000);
  const access = scopes.map((scope) => {
    const [type, name, actions = ''] = scope.split(':');
    return { type, name, actions: actions.split(',') };
  });
  const der = readFileSync(cert, 'utf8').replaceAll(/-----[^-]+-----|\s/g, '');
  const header = { typ: 'JWT', alg: 'ES256', x5c: [der] };
  const claims = {
    iss: ISSUER,
    sub: 'x',
    aud: SERVICE,
    exp: now + 300,
    nbf: now - 60,
    iat: now,
    jti: randomBytes(8).toString('hex'),
    access,
  };
  const text = `${base64url(JSON.stringify(header))}.${base64url(JSON.stringify(claims))}`;
  const signature = sign('sha256', Buffer.from(text), {
    key: createPrivateKey(readFileSync(key)),
    dsaEncoding: 'ieee-p1363',
  });
  return `${text}.${base64url(signature)}`;
}

async function tokenService(dir: string, registry: Pick<TestRegistry, 'username' | 'password' | 'tokenRequests'>) {
  const authority = await createAuthority(dir, 'token', deadline());
  const expected = `Basic ${Buffer.from(`${registry.username}:${registry.password}`).toString('base64')}`;
  const server = await listen((request, response) => {
    const { authorization } = request.headers;
    registry.tokenRequests.push({ authorization, url: request.url ?? '' });
    if (authorization !== undefined && authorization !== expected) {
      response.writeHead(401).end('{}');
      return;
    }
    const scopes = new URL(request.url ?? '', 'http://x').searchParams.getAll('scope');
    // Without a credential it gives tokens to read with.
    const granted = scopes.map((scope) => (authorization ? scope : scope.replace(/[^:]+$/, 'pull')));
    response.end(JSON.stringify({ token: tokenFor(granted, authority.cert, authority.key), expires_in: 300 }));
  });
  const auth = {
    token: { realm: `http://${server.host}/token`, service: SERVICE, issuer: ISSUER, rootcertbundle: authority.cert },
  };
  return { auth, close: server.close };
}

async function basicAuth(dir: string, { username, password }: Pick<TestRegistry, 'username' | 'password'>) {
  const file = join(dir, 'htpasswd');
  const line = await execOk('htpasswd', ['-n', '-i', '-B', '-C', '4', username], {
    signal: deadline(),
    input: password,
  });
  writeFileSync(file, line.trim());
  return { htpasswd: { realm: 'test', path: file } };
}

/** Starts Debian's docker-registry on a free port and waits until it listens. */
async function serve(config: string): Promise<{ host: string; stop: () => Promise<void> }> {
  const child = spawn(REGISTRY, ['serve', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH },
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const host = await new Promise<string>((resolve, reject) => {
    let log = '';
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`docker-registry ended: ${log}`)));
    child.stderr.on('data', (chunk: Buffer) => {
      log = (log + chunk).slice(-20_000);
      const port = /listening on 127\.0\.0\.1:(\d+)/.exec(log)?.[1];
      if (port) resolve(`127.0.0.1:${port}`);
    });
  });
  return {
    host,
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Starts a registry; without `auth` everybody may do everything. */
export async function startRegistry(options: Options = {}): Promise<TestRegistry> {
  await ensureRegistryPrograms();
  const dir = mkdtempSync(join(tmpdir(), 'registry-'));
  const dataDir = join(dir, 'data');
  mkdirSync(dataDir);
  const facts = {
    username: 'robot',
    password: randomBytes(16).toString('hex'),
    tokenRequests: [] as TestRegistry['tokenRequests'],
  };
  const tokens = options.auth === 'token' ? await tokenService(dir, facts) : undefined;
  const auth = options.auth === 'basic' ? await basicAuth(dir, facts) : tokens?.auth;
  const authority = options.tls ? await createAuthority(dir, 'registry', deadline()) : undefined;
  const serving =
    authority && (await createServerCert({ dir, name: 'server', authority, names: ['IP:127.0.0.1'] }, deadline()));
  const config = join(dir, 'config.yml');
  writeFileSync(
    config,
    stringify({
      version: '0.1',
      log: { level: 'info', accesslog: { disabled: true } },
      storage: { filesystem: { rootdirectory: dataDir }, delete: { enabled: options.deletes ?? true } },
      http: {
        addr: '127.0.0.1:0',
        secret: randomBytes(16).toString('hex'),
        ...(serving ? { tls: { certificate: serving.cert, key: serving.key } } : {}),
      },
      ...(auth ? { auth } : {}),
    }),
  );
  const { host, stop } = await serve(config);
  return {
    ...facts,
    host,
    dataDir,
    caFile: authority?.cert,
    [Symbol.asyncDispose]: async () => {
      await stop();
      await tokens?.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Text of a Docker config with one entry. */
export const dockerConfig = (host: string, username: string, password: string): string =>
  JSON.stringify({ auths: { [host]: { auth: Buffer.from(`${username}:${password}`).toString('base64') } } });
