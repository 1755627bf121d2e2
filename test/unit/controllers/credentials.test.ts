import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../src/api/labels.ts';
import { PolicyError } from '../../../src/base/errors.ts';
import { redact } from '../../../src/base/redact.ts';
import { CredentialReader, credentialOf, proxyOf } from '../../../src/controllers/credentials.ts';
import type { KubeApi } from '../../../src/kube/types.ts';
import { FakeClock } from '../kube/fake-clock.ts';

const secret = (values: Record<string, string>, annotations?: Record<string, string>) => ({
  metadata: { name: 'git', namespace: 'ns', ...(annotations ? { annotations } : {}) },
  data: Object.fromEntries(Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
});

/** The credential without its absent members, or reason and message of the refusal. */
function read(values: Record<string, string>, annotations?: Record<string, string>): unknown {
  try {
    return JSON.parse(JSON.stringify(credentialOf(secret(values, annotations))));
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    return `${error.policy} ${error.reason}: ${error.message}`;
  }
}

const KEYS =
  'its keys can be username and password, bearerToken, identity and known_hosts, githubAppID with githubAppPrivateKey and githubAppInstallationID or githubAppInstallationOwner, or ca.crt';
const APP = { githubAppID: '12', githubAppInstallationID: '34\n', githubAppPrivateKey: 'app-key\n' };

describe('credentialOf', () => {
  it.each<[string, Record<string, string>, unknown]>([
    [
      'username and password',
      { username: 'bot', password: 'pass-word-1' },
      { username: 'bot', password: 'pass-word-1' },
    ],
    [
      'with the line end of an editor',
      { username: 'bot\n', password: 'pass-word-1\r\n' },
      { username: 'bot', password: 'pass-word-1' },
    ],
    ['blanks are part of a password', { username: 'bot', password: ' p w ' }, { username: 'bot', password: ' p w ' }],
    ['bearerToken', { bearerToken: 'token-value-1\n' }, { bearerToken: 'token-value-1' }],
    [
      'identity and known_hosts',
      { identity: 'key\n', known_hosts: 'host\n' },
      { identity: 'key\n', knownHosts: 'host\n' },
    ],
    ['ca.crt alone', { 'ca.crt': 'pem' }, { caCert: 'pem' }],
    ['an unknown key besides', { bearerToken: 'token-value-1', note: 'x' }, { bearerToken: 'token-value-1' }],
    [
      'username without password',
      { username: 'bot' },
      `Waiting SecretInvalid: Secret "git" has username but no password; ${KEYS}`,
    ],
    [
      'password without username',
      { password: 'pass-word-1' },
      `Waiting SecretInvalid: Secret "git" has password but no username; ${KEYS}`,
    ],
    [
      'identity without known_hosts',
      { identity: 'key' },
      `Waiting SecretInvalid: Secret "git" has identity but no known_hosts; ssh-keyscan <host> prints it; ${KEYS}`,
    ],
    ['no key at all', {}, `Waiting SecretInvalid: Secret "git" has none of the keys that hold a credential; ${KEYS}`],
    [
      'empty values',
      { bearerToken: '', 'ca.crt': '' },
      `Waiting SecretInvalid: Secret "git" has none of the keys that hold a credential; ${KEYS}`,
    ],
    [
      'only unknown keys',
      { token: 'token-value-1' },
      `Waiting SecretInvalid: Secret "git" has none of the keys that hold a credential; ${KEYS}`,
    ],
    [
      'a GitHub App',
      { ...APP, 'ca.crt': 'pem' },
      { caCert: 'pem', githubApp: { appID: '12', installationID: '34', privateKey: 'app-key' } },
    ],
    [
      'a GitHub App by owner, on its own server',
      {
        ...{ githubAppID: '12', githubAppInstallationOwner: 'acme', githubAppPrivateKey: 'app-key' },
        githubAppBaseURL: 'https://ghe.example.com/api/v3',
      },
      {
        githubApp: { appID: '12', owner: 'acme', privateKey: 'app-key', baseURL: 'https://ghe.example.com/api/v3' },
      },
    ],
    [
      'a GitHub App without id',
      { githubAppPrivateKey: 'app-key' },
      `Waiting SecretInvalid: Secret "git" has keys of a GitHub App but no githubAppID; ${KEYS}`,
    ],
    [
      'a GitHub App without key',
      { githubAppID: '12' },
      `Waiting SecretInvalid: Secret "git" has githubAppID but no githubAppPrivateKey; ${KEYS}`,
    ],
    [
      'a GitHub App without installation',
      { githubAppID: '12', githubAppPrivateKey: 'app-key', githubAppInstallationID: '' },
      `Waiting SecretInvalid: Secret "git" has githubAppID but neither githubAppInstallationID nor githubAppInstallationOwner; ${KEYS}`,
    ],
    [
      'a GitHub App beside a token',
      { ...APP, bearerToken: 'token-value-1' },
      `Waiting SecretInvalid: Secret "git" has keys of a GitHub App and a password or bearerToken beside them; keep one of the two; ${KEYS}`,
    ],
    [
      'a value over 64 KiB',
      { bearerToken: 'x'.repeat(65_537) },
      'Waiting SecretInvalid: key "bearerToken" of Secret "git" is larger than 64 KiB; check what was stored in it',
    ],
  ])('%s', (_, values, expected) => {
    expect(read(values)).toEqual(expected);
  });

  it.each<[string, string[] | undefined]>([
    ['git.example.com', ['git.example.com']],
    [' Git.Example.com , other:8443,', ['git.example.com', 'other:8443']],
    ['', []],
  ])('reads the hosts annotation %j', (text, hosts) => {
    expect(read({ bearerToken: 'token-value-1' }, { [ANNOTATIONS.hosts]: text })).toMatchObject({ hosts });
  });

  it.each(['password', 'bearerToken', 'identity', 'anything-else', 'githubAppPrivateKey'])(
    'has the value of %s masked from then on, also when the Secret is refused',
    (key) => {
      const value = `canary-${key}-${process.hrtime.bigint()}`;
      read({ [key]: value });
      expect(redact(`x ${value} y ${Buffer.from(value).toString('base64')}`)).toBe('x *** y ***');
    },
  );

  it('does not mask what is public', () => {
    read({ username: 'public-user-name', password: 'pass-word-2', 'ca.crt': 'public-ca', known_hosts: 'public-host' });
    expect(redact('public-user-name public-ca public-host')).toBe('public-user-name public-ca public-host');
  });
});

describe('proxyOf', () => {
  it('takes address, username and password', () => {
    const values = { address: 'http://p:1\n', username: 'u', password: 'proxy-pass-1\n' };
    expect(proxyOf(secret(values, { [ANNOTATIONS.hosts]: 'p' }))).toEqual({
      ...{ address: 'http://p:1', username: 'u', password: 'proxy-pass-1' },
      hosts: ['p'],
    });
    expect(redact('proxy-pass-1 at http://p:1')).toBe('*** at http://p:1');
  });

  it('needs an address', () => {
    expect(() => proxyOf(secret({ username: 'u' }))).toThrowErrorMatchingInlineSnapshot(
      `[PolicyError: Secret "git" of proxySecretRef has no address, such as http://proxy.example.com:3128; its keys are address, username and password]`,
    );
  });
});

describe('CredentialReader', () => {
  const { signal } = new AbortController();

  function setup(answer: () => ReturnType<typeof secret> | undefined) {
    const clock = new FakeClock();
    const asked: string[] = [];
    const api = {
      get: async (_: unknown, namespace: string, name: string) => {
        asked.push(`${namespace}/${name}`);
        return answer();
      },
    } as unknown as KubeApi;
    const reader = new CredentialReader(api, clock);
    const get = (fresh: boolean, name = 'git', namespace = 'ns') => reader.read(namespace, { name }, { fresh }, signal);
    return { clock, asked, reader, get };
  }

  it('asks for nothing without a reference', async () => {
    const { reader, asked } = setup(() => undefined);
    expect(await reader.read('ns', undefined, { fresh: true }, signal)).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it('reads once for many Skills, and hands out the same object, so that nobody takes it for another', async () => {
    const { get, asked } = setup(() => secret({ bearerToken: 'token-value-1' }));
    const [first, second] = [await get(true), await get(false)];
    expect(second).toBe(first);
    expect(asked).toHaveLength(1);
  });

  it('reads anew when asked to, and after half a minute', async () => {
    const { get, asked, clock } = setup(() => secret({ bearerToken: 'token-value-1' }));
    await get(true);
    await get(true);
    await clock.advance(29_999);
    await get(false);
    expect(asked).toHaveLength(2);
    await clock.advance(1);
    await get(false);
    expect(asked).toHaveLength(3);
  });

  it('never mixes namespaces up', async () => {
    const { get, asked } = setup(() => secret({ bearerToken: 'token-value-1' }));
    await get(false, 'git', 'one');
    await get(false, 'git', 'two');
    expect(asked).toEqual(['one/git', 'two/git']);
  });

  it('forgets a Secret that went or broke', async () => {
    let stored: ReturnType<typeof secret> | undefined = secret({ bearerToken: 'token-value-1' });
    const { get, asked } = setup(() => stored);
    await get(true);
    stored = undefined;
    await expect(get(true)).rejects.toMatchObject({ policy: 'Waiting', reason: 'SecretNotFound' });
    await expect(get(false)).rejects.toThrowErrorMatchingInlineSnapshot(
      `[PolicyError: Secret "git" does not exist in namespace "ns"; create it with kubectl -n ns create secret generic git …]`,
    );
    expect(asked).toHaveLength(3);
  });
});
