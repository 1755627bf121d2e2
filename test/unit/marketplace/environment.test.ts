import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PolicyError } from '../../../src/base/errors.ts';
import { credentialHash, localEnvironment, remoteEnvironment } from '../../../src/marketplace/environment.ts';
import type { GitCredential } from '../../../src/marketplace/port.ts';
import { parseRemote } from '../../../src/marketplace/url.ts';

const NEVER = new AbortController().signal;
const at = (url: string) => parseRemote('git', { git: { url } });
const KEY = '-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----';

async function directory(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'environment-test-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

const configOf = (env: Record<string, string>) =>
  Object.fromEntries(
    Array.from({ length: Number(env.GIT_CONFIG_COUNT) }, (_, n) => [
      env[`GIT_CONFIG_KEY_${n}`],
      env[`GIT_CONFIG_VALUE_${n}`],
    ]),
  );

async function problem(url: string, credential: GitCredential): Promise<string> {
  try {
    await remoteEnvironment(await directory(), { remote: at(url), credential }, NEVER);
  } catch (error) {
    if (error instanceof PolicyError) return `${error.policy} ${error.reason}: ${error.message}`;
    throw error;
  }
  return 'none';
}

describe('remoteEnvironment', () => {
  test('takes nothing from the process and allows three transports', async () => {
    await using environment = await remoteEnvironment(await directory(), { remote: at('https://h/x') }, NEVER);
    const { env } = environment;
    expect(
      Object.keys(env)
        .filter((name) => !name.startsWith('GIT_CONFIG_'))
        .sort(),
    ).toMatchInlineSnapshot(`
      [
        "GIT_ALLOW_PROTOCOL",
        "GIT_LFS_SKIP_SMUDGE",
        "GIT_NO_LAZY_FETCH",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OPTIONAL_LOCKS",
        "GIT_TERMINAL_PROMPT",
        "HOME",
        "LC_ALL",
        "PATH",
      ]
    `);
    expect(env.GIT_ALLOW_PROTOCOL).toBe('https:http:ssh');
    expect(configOf(env)).toMatchObject({
      'core.hooksPath': '/dev/null',
      'http.followRedirects': 'false',
      'credential.helper': '',
    });
    expect(localEnvironment('/home').GIT_ALLOW_PROTOCOL).toBe('none');
  });

  test('binds the header to the origin', async () => {
    const dir = await directory();
    const basic = await remoteEnvironment(
      dir,
      { remote: at('https://h/x'), credential: { username: 'u', password: 'p:w\n' } },
      NEVER,
    );
    expect(configOf(basic.env)['http.https://h:443/.extraHeader']).toBe(`Authorization: Basic ${btoa('u:p:w')}`);
    const bearer = await remoteEnvironment(
      dir,
      { remote: at('http://h:81/x'), credential: { bearerToken: 'tok', password: 'ignored' } },
      NEVER,
    );
    expect(configOf(bearer.env)['http.http://h:81/.extraHeader']).toBe('Authorization: Bearer tok');
    expect(basic.authenticated && bearer.authenticated).toBe(true);
    expect(await readdir(dir)).toEqual([]);
  });

  test('writes key files for their owner alone and removes them', async () => {
    const dir = await directory();
    const environment = await remoteEnvironment(
      dir,
      { remote: at('ssh://git@h/x'), credential: { identity: KEY, knownHosts: 'h ssh-ed25519 AAAA' } },
      NEVER,
    );
    const [call = ''] = await readdir(dir);
    for (const name of ['identity', 'known_hosts']) {
      expect((await stat(join(dir, call, name))).mode & 0o777).toBe(0o600);
      expect(await readFile(join(dir, call, name), 'utf8')).toMatch(/\n$/);
    }
    expect((await stat(join(dir, call))).mode & 0o777).toBe(0o700);
    expect(environment.env.GIT_SSH_COMMAND?.replaceAll(join(dir, call), '<dir>')).toMatchInlineSnapshot(
      `"ssh -F none -i '<dir>/identity' -oBatchMode=yes -oStrictHostKeyChecking=yes -oUserKnownHostsFile='<dir>/known_hosts' -oGlobalKnownHostsFile=/dev/null -oUpdateHostKeys=no -oIdentitiesOnly=yes -oIdentityAgent=none -oPasswordAuthentication=no -oClearAllForwardings=yes -oForwardAgent=no -oConnectTimeout=15 -oServerAliveInterval=15 -oServerAliveCountMax=4"`,
    );
    await environment[Symbol.asyncDispose]();
    expect(await readdir(dir)).toEqual([]);
  });

  test('names proxy and authorities where there are any', async () => {
    const route = { url: 'http://p:1', host: 'p', port: 1, username: 'u', password: 'p w', from: 'secret' } as const;
    const proxied = { remote: at('https://h/x'), proxy: route, caFile: '/ca.pem' };
    const { env } = await remoteEnvironment(await directory(), proxied, NEVER);
    expect(configOf(env)).toMatchObject({ 'http.proxy': 'http://u:p%20w@p:1', 'http.proxySSLCAInfo': '/ca.pem' });
    expect(env.GIT_SSL_CAINFO).toBe('/ca.pem');
    const caCert = '-----BEGIN CERTIFICATE-----';
    await using own = await remoteEnvironment(await directory(), { ...proxied, credential: { caCert } }, NEVER);
    expect(own.env.GIT_SSL_CAINFO).toMatch(/\/ca\.crt$/);
    const plain = await remoteEnvironment(await directory(), { remote: at('http://h/x'), caFile: '/ca.pem' }, NEVER);
    expect(plain.env).not.toHaveProperty('GIT_SSL_CAINFO');
    expect(configOf(plain.env)).not.toHaveProperty('http.proxy');
  });

  test.each<[string, string, GitCredential, string]>([
    [
      'a password of two lines',
      'https://h/x',
      { username: 'u', password: 'a\nX-Evil: 1' },
      'SecretInvalid: password in the Secret contains control characters',
    ],
    ['a token of two lines', 'https://h/x', { bearerToken: 'a\r\nb' }, 'SecretInvalid: bearerToken'],
    [
      'a colon in the user name',
      'https://h/x',
      { username: 'a:b', password: 'p' },
      'SecretInvalid: username in the Secret contains ":"',
    ],
    ['a CA that is none', 'https://h/x', { caCert: 'x' }, 'SecretInvalid: ca.crt'],
    [
      'ssh without a key',
      'ssh://h/x',
      { username: 'u', password: 'p' },
      'SecretInvalid: an ssh URL needs the key identity',
    ],
    ['ssh without known hosts', 'ssh://h/x', { identity: KEY }, 'SecretInvalid: an ssh URL needs the key known_hosts'],
    ['another host', 'https://evil/x', { password: 'p', hosts: ['h'] }, 'SecretHostNotAllowed'],
    ['another port', 'https://h:444/x', { password: 'p', hosts: ['h:443'] }, 'SecretHostNotAllowed'],
    ['the named host', 'https://h/x', { password: 'p', hosts: [' H '] }, 'none'],
    ['the named host and port', 'https://h/x', { password: 'p', hosts: ['h:443'] }, 'none'],
    ['no host at all', 'https://h/x', { password: 'p', hosts: [] }, 'SecretHostNotAllowed'],
  ])('%s', async (_what, url, credential, expected) => {
    expect(await problem(url, credential)).toContain(expected);
  });
});

test('credentialHash tells every value apart and leaves the hosts out', () => {
  const variants: (GitCredential | undefined)[] = [
    undefined,
    { username: 'a' },
    { password: 'a' },
    { username: 'a', password: 'a' },
    { bearerToken: 'a' },
    { identity: 'a' },
    { knownHosts: 'a' },
    { caCert: 'a' },
    { githubApp: { appID: 'a', privateKey: 'b' } },
    { githubApp: { appID: 'a', privateKey: 'c' } },
    { githubApp: { appID: 'a', privateKey: 'b', owner: 'd' } },
    { githubApp: { appID: 'a', privateKey: 'b', installationID: 'd' } },
    { githubApp: { appID: 'a', privateKey: 'b', baseURL: 'd' } },
  ];
  expect(new Set(variants.map(credentialHash)).size).toBe(variants.length);
  expect(credentialHash({})).toBe(credentialHash(undefined));
  expect(credentialHash({ username: 'a', hosts: ['h'] })).toBe(credentialHash({ username: 'a' }));
});
