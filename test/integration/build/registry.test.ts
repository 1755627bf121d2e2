import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { ReadCredential } from '../../../src/build/registry.auth.ts';
import { HttpRegistry } from '../../../src/build/registry.ts';
import { pushImage } from '../../../src/jobs/push.ts';
import { execOk } from '../../cluster/exec.ts';
import { listen } from '../../support/listen.ts';
import { layoutParts, writeLayout } from '../../unit/jobs/layouts.ts';
import { dockerConfig, startRegistry, type TestRegistry } from './registries.ts';

const signal = new AbortController().signal;
const NOTHING = `sha256:${'0'.repeat(64)}`;

let root: string;
let open: TestRegistry;
let basic: TestRegistry;
let token: TestRegistry;
let tls: TestRegistry;
let keeping: TestRegistry;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'registry-test-'));
  open = await startRegistry();
  basic = await startRegistry({ auth: 'basic' });
  token = await startRegistry({ auth: 'token' });
  tls = await startRegistry({ auth: 'basic', tls: true });
  keeping = await startRegistry({ deletes: false });
});
afterAll(async () => {
  for (const registry of [open, basic, token, tls, keeping]) await registry?.[Symbol.asyncDispose]();
  rmSync(root, { recursive: true, force: true });
});

const credentialOf =
  ({ username, password }: TestRegistry, hosts?: string[]): ReadCredential =>
  async () => ({ username, password, hosts });

const connect = (registry: TestRegistry, credential: ReadCredential | undefined = credentialOf(registry)) =>
  new HttpRegistry({
    host: registry.host,
    insecure: registry.caFile === undefined,
    ca: registry.caFile && readFileSync(registry.caFile, 'utf8'),
    credential,
  });

/** Pushes an image with a text of its own and answers with digest and size. */
async function push(registry: TestRegistry, repository: string, text: string) {
  const dir = mkdtempSync(join(root, 'push-'));
  const [layout, work, credential] = [join(dir, 'layout'), join(dir, 'work'), join(dir, 'config.json')];
  writeLayout(layout, layoutParts(undefined, text));
  writeFileSync(credential, dockerConfig(registry.host, registry.username, registry.password));
  const image = `${registry.host}/${repository}`;
  const rest = { maxBytes: 1e9, result: join(dir, 'result'), insecure: true, network: {}, skopeo: 'skopeo' };
  return await pushImage({ layout, work, image, credential, ...rest }, systemClock, signal);
}

const rejection = async (promise: Promise<unknown>) => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason as Record<string, unknown>,
  );
  return error && { policy: error.policy, reason: error.reason };
};

const AUTH_FAILED = { policy: 'Waiting', reason: 'RegistryAuthFailed' };

describe.each<[string, () => TestRegistry]>([
  ['without authentication', () => open],
  ['with basic authentication', () => basic],
  ['with tokens', () => token],
])('a registry %s', (_name, registry) => {
  test('answers a ping', async () => {
    await expect(connect(registry()).ping(signal)).resolves.toBeUndefined();
  });

  test('shows digest and size of a pushed image by digest and by tag', async () => {
    const client = connect(registry());
    const pushed = await push(registry(), 'team/pdf', 'shown');
    expect(await client.image('team/pdf', pushed.digest, signal)).toEqual(pushed);
    expect(await client.image('team/pdf', pushed.digest.slice(7, 39), signal)).toEqual(pushed);
    expect(await client.has('team/pdf', pushed.digest, signal)).toBe(true);
  });

  test('has no image of another digest, tag or repository', async () => {
    const client = connect(registry());
    expect(await client.image('team/pdf', NOTHING, signal)).toBeUndefined();
    expect(await client.image('team/pdf', 'latest', signal)).toBeUndefined();
    expect(await client.image('team/none', NOTHING, signal)).toBeUndefined();
    expect(await client.has('team/pdf', NOTHING, signal)).toBe(false);
  });

  test('lists the tags of a repository, and none of one that is not there or empty', async () => {
    const client = connect(registry());
    expect(await client.tags('team/tags', signal)).toEqual([]);
    const pushed = [await push(registry(), 'team/tags', 'one'), await push(registry(), 'team/tags', 'two')];
    const tags = pushed.map(({ digest }) => digest.slice(7, 39)).sort();
    expect((await client.tags('team/tags', signal)).sort()).toEqual(tags);
    for (const { digest } of pushed) await client.deleteImage('team/tags', digest, signal);
    expect(await client.tags('team/tags', signal)).toEqual([]);
  });

  test('deletes an image once, with every tag of it, and no other', async () => {
    const client = connect(registry());
    const [kept, gone] = [await push(registry(), 'team/del', 'kept'), await push(registry(), 'team/del', 'gone')];
    expect(await client.deleteImage('team/del', gone.digest, signal)).toBe('deleted');
    expect(await client.deleteImage('team/del', gone.digest, signal)).toBe('absent');
    expect(await client.image('team/del', gone.digest.slice(7, 39), signal)).toBeUndefined();
    expect(await client.has('team/del', kept.digest, signal)).toBe(true);
  });
});

describe('credentials', () => {
  test.each<[string, () => TestRegistry]>([
    ['basic', () => basic],
    ['token', () => token],
  ])('that are wrong: %s', async (_name, registry) => {
    const wrong = connect(registry(), async () => ({ username: 'robot', password: 'wrong-password' }));
    expect(await rejection(wrong.ping(signal))).toEqual(AUTH_FAILED);
    expect(await rejection(wrong.image('team/pdf', NOTHING, signal))).toEqual(AUTH_FAILED);
    expect(await rejection(wrong.deleteImage('team/pdf', NOTHING, signal))).toEqual(AUTH_FAILED);
  });

  test('that are not there', async () => {
    const client = new HttpRegistry({ host: basic.host, insecure: true });
    expect(await rejection(client.ping(signal))).toEqual(AUTH_FAILED);
  });

  test('that changed count at once', async () => {
    let { password } = basic;
    const client = connect(basic, async () => ({ username: basic.username, password }));
    await client.ping(signal);
    password = 'rotated-away';
    const fresh = connect(basic, async () => ({ username: basic.username, password }));
    expect(await rejection(fresh.ping(signal))).toEqual(AUTH_FAILED);
    password = basic.password;
    await expect(fresh.ping(signal)).resolves.toBeUndefined();
  });

  test('go to no host that their Secret does not name', async () => {
    const refused = { policy: 'Waiting', reason: 'SecretHostNotAllowed' };
    expect(await rejection(connect(basic, credentialOf(basic, ['other.example.com'])).ping(signal))).toEqual(refused);
    const before = token.tokenRequests.length;
    expect(await rejection(connect(token, credentialOf(token, ['other.example.com'])).ping(signal))).toEqual(refused);
    expect(token.tokenRequests.length).toBe(before);
    await expect(connect(basic, credentialOf(basic, ['127.0.0.1'])).ping(signal)).resolves.toBeUndefined();
  });

  test('are exchanged for a token once for many calls', async () => {
    const client = connect(token);
    const before = token.tokenRequests.length;
    for (let i = 0; i < 5; i++) await client.has('team/pdf', NOTHING, signal);
    expect(token.tokenRequests.length - before).toBe(1);
  });

  test('stand in no message', async () => {
    const client = connect(basic, async () => ({ username: 'robot', password: 'canary-4711' }));
    await expect(client.ping(signal)).rejects.toThrow(/^(?!.*canary-4711).*put a valid credential/);
  });
});

describe('anonymous writes', () => {
  test('are found where the registry takes them, and the upload is cancelled', async () => {
    expect(await connect(open).acceptsAnonymousWrites('probe/write', signal)).toBe(true);
    const uploads = readdirSync(join(open.dataDir, 'docker/registry/v2/repositories/probe/write/_uploads'), {
      recursive: true,
    });
    // What stays is the registry's own: it keeps the state of the checksum of a cancelled upload.
    expect(uploads.filter((path) => /\/(?:startedat|data)$/.test(String(path)))).toEqual([]);
  });

  test.each<[string, () => TestRegistry]>([
    ['asks for a password', () => basic],
    ['hands out tokens to read with', () => token],
  ])('are none where the registry %s', async (_name, registry) => {
    expect(await connect(registry()).acceptsAnonymousWrites('probe/write', signal)).toBe(false);
  });

  test('are asked for without the credential, even when it has just been used', async () => {
    const client = connect(token);
    await client.has('probe/write', NOTHING, signal);
    const before = token.tokenRequests.length;
    await client.acceptsAnonymousWrites('probe/write', signal);
    expect(token.tokenRequests.slice(before).map(({ authorization }) => authorization)).toEqual([undefined]);
  });
});

test('a registry that deletes nothing says so', async () => {
  const { digest } = await push(keeping, 'team/kept', 'kept');
  expect(await connect(keeping).deleteImage('team/kept', digest, signal)).toBe('unsupported');
});

describe('certificates', () => {
  test('of a known authority are taken', async () => {
    await expect(connect(tls).ping(signal)).resolves.toBeUndefined();
  });

  test('of an unknown authority stop the operator until somebody gives the authority', async () => {
    const client = new HttpRegistry({ host: tls.host, credential: credentialOf(tls) });
    expect(await rejection(client.ping(signal))).toEqual({ policy: 'Waiting', reason: 'RegistryConfigInvalid' });
  });
});

describe('an index of several images', () => {
  test('is no image that could be served', async () => {
    const { digest } = await push(open, 'team/index', 'one');
    const manifests = [{ mediaType: 'application/vnd.oci.image.manifest.v1+json', digest, size: 1 }];
    const index = JSON.stringify({ schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', manifests });
    const file = join(root, 'index.json');
    writeFileSync(file, index);
    const type = 'content-type: application/vnd.oci.image.index.v1+json';
    const url = `http://${open.host}/v2/team/index/manifests/several`;
    await execOk('curl', ['-sSf', '-X', 'PUT', '-H', type, '--data-binary', `@${file}`, url], { signal });
    expect(await rejection(connect(open).image('team/index', 'several', signal))).toEqual({
      policy: 'Stalled',
      reason: 'ImageInvalid',
    });
  });
});

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** A client of a server that answers as it is told. */
async function against(handle: Handle, over: { timeoutMs?: number; credential?: ReadCredential } = {}) {
  const server = await listen(handle);
  const client = new HttpRegistry({ host: server.host, insecure: true, timeoutMs: 2000, ...over });
  return {
    host: server.host,
    client,
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await server.close();
    },
  };
}

describe('an answer out of order', () => {
  const unavailable = { policy: 'Retry', reason: 'RegistryUnavailable' };

  test.each<[string, Handle, object]>([
    ['503', (_, response) => response.writeHead(503).end('busy'), unavailable],
    [
      '429',
      (_, response) => response.writeHead(429, { 'retry-after': '7' }).end(),
      { policy: 'Retry', reason: 'RegistryRateLimited' },
    ],
    ['403', (_, response) => response.writeHead(403).end(), { policy: 'Waiting', reason: 'RegistryDenied' }],
    ['a page', (_, response) => response.end('<html>'), { policy: 'Stalled', reason: 'ImageInvalid' }],
    ['a cut connection', (request) => request.socket.destroy(), unavailable],
    ['silence', () => undefined, unavailable],
    ['an endless body', (_, response) => response.end(Buffer.alloc(5 * 1024 * 1024)), unavailable],
    [
      'a redirect to itself',
      (_, response) => response.writeHead(307, { location: '/again' }).end(),
      { policy: 'Retry', reason: 'RegistryUnexpectedAnswer' },
    ],
    [
      'a redirect to a file',
      (_, response) => response.writeHead(307, { location: 'file:///etc/passwd' }).end(),
      { policy: 'Retry', reason: 'RegistryUnexpectedAnswer' },
    ],
    [
      'a token service that is a file',
      (_, response) => response.writeHead(401, { 'www-authenticate': 'Bearer realm="file:///x"' }).end(),
      { policy: 'Retry', reason: 'RegistryUnexpectedAnswer' },
    ],
  ])('is an error with a policy: %s', async (_name, handle, expected) => {
    await using server = await against(handle);
    expect(await rejection(server.client.image('a', 'latest', signal))).toEqual(expected);
  });

  test('with other bytes than the digest asks for is not believed', async () => {
    await using server = await against((_, response) => response.end('{}'));
    expect(await rejection(server.client.image('a', NOTHING, signal))).toEqual({
      policy: 'Retry',
      reason: 'RegistryUnexpectedAnswer',
    });
  });

  test('that redirects elsewhere gets the request without the credential', async () => {
    const seen: (string | undefined)[] = [];
    await using other = await against((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(404).end();
    });
    const target = `http://${other.host}/blob`;
    await using server = await against(
      (request, response) => {
        seen.push(request.headers.authorization);
        if (!request.headers.authorization) response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
        else response.writeHead(307, { location: target }).end();
      },
      { credential: async () => ({ username: 'robot', password: 'canary-4712' }) },
    );
    await server.client.image('a', 'latest', signal);
    expect(seen).toEqual([undefined, expect.stringMatching(/^Basic /), undefined]);
  });

  test('that redirects a delete is refused and not followed', async () => {
    const asked: (string | undefined)[] = [];
    await using server = await against((request, response) => {
      asked.push(request.url);
      response.writeHead(request.url === '/gone' ? 202 : 307, { location: '/gone' }).end();
    });
    expect(await rejection(server.client.deleteImage('a', NOTHING, signal))).toEqual({
      policy: 'Retry',
      reason: 'RegistryUnexpectedAnswer',
    });
    expect(asked).toEqual([`/v2/a/manifests/${NOTHING}`]);
  });

  test('does not outlive the caller', async () => {
    await using server = await against(() => undefined, { timeoutMs: 60_000 });
    const controller = new AbortController();
    const pending = server.client.ping(controller.signal);
    const stop = new Error('stop');
    controller.abort(stop);
    await expect(pending).rejects.toBe(stop);
  });
});

test('a registry that is down is unavailable', async () => {
  const server = await listen(() => undefined);
  await server.close();
  const client = new HttpRegistry({ host: server.host, insecure: true });
  expect(await rejection(client.ping(signal))).toEqual({ policy: 'Retry', reason: 'RegistryUnavailable' });
});

test.each(['../x', 'A', 'a//b?', ''])('never asks for a repository named %j', async (repository) => {
  expect(await rejection(connect(open).has(repository, NOTHING, signal))).toMatchObject({ reason: 'InternalError' });
});

test('never deletes by tag', async () => {
  expect(await rejection(connect(open).deleteImage('a', 'latest', signal))).toMatchObject({ reason: 'InternalError' });
});
