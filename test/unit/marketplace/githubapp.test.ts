import { createPrivateKey, createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { PolicyError } from '../../../src/base/errors.ts';
import { pauseMs } from '../../../src/marketplace/githubapp.http.ts';
import { appJwt, GitHubAppTokens } from '../../../src/marketplace/githubapp.ts';
import type { GitHubApp } from '../../../src/marketplace/port.ts';
import { newAppKey } from '../../support/github-api.ts';
import { FakeClock } from '../kube/fake-clock.ts';

const NEVER = new AbortController().signal;
const privateKey = newAppKey();
const APP: GitHubApp = { appID: '12', installationID: '34', privateKey };

test('the assertion is what GitHub describes: RS256, backdated a minute, below ten minutes', () => {
  const now = Date.UTC(2026, 0, 1) + 999;
  const jwt = appJwt('12', createPrivateKey(privateKey), now);
  const [head = '', claims = '', signature = ''] = jwt.split('.');
  const json = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString());
  expect(json(head)).toEqual({ alg: 'RS256', typ: 'JWT' });
  const seconds = Date.UTC(2026, 0, 1) / 1000;
  expect(json(claims)).toEqual({ iat: seconds - 60, exp: seconds + 540, iss: '12' });
  const key = createPublicKey(privateKey);
  expect(verify('RSA-SHA256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url'))).toBe(true);
});

describe('what a Secret may say', () => {
  const pem = (type: 'ec' | 'ed25519') =>
    (type === 'ec' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519')).privateKey
      .export({ type: 'pkcs8', format: 'pem' })
      .toString();

  test.each<[what: string, app: Partial<GitHubApp>, url: string, expected: RegExp]>([
    ['an id with blanks', { appID: 'my app' }, 'https://github.com', /^SecretInvalid: githubAppID/],
    ['no number', { installationID: 'acme' }, 'https://github.com', /^SecretInvalid: githubAppInstallationID/],
    [
      'neither',
      { installationID: undefined },
      'https://github.com',
      /^SecretInvalid: .* needs githubAppInstallationID/,
    ],
    [
      'an owner that is a path',
      { installationID: undefined, owner: '../x' },
      'https://github.com',
      /^SecretInvalid: githubAppInstallationOwner/,
    ],
    ['no key', { privateKey: 'canary' }, 'https://github.com', /^SecretInvalid: githubAppPrivateKey(?!.*canary)/],
    ['another kind of key', { privateKey: pem('ec') }, 'https://github.com', /^SecretInvalid: githubAppPrivateKey/],
    ['and another', { privateKey: pem('ed25519') }, 'https://github.com', /^SecretInvalid: githubAppPrivateKey/],
    ['plain http', { baseURL: 'http://ghe/api/v3' }, 'https://ghe', /^SecretInvalid: githubAppBaseURL/],
    ['a password', { baseURL: 'https://u:canary@ghe' }, 'https://ghe', /^SecretInvalid: githubAppBaseURL(?!.*canary)/],
    ['an http remote', {}, 'http://github.com', /^SecretInvalid: .*https URLs alone/],
    ['an ssh remote', {}, 'ssh://github.com', /^SecretInvalid: .*https URLs alone/],
    ['another host', {}, 'https://evil.example', /^SecretHostNotAllowed: .*for github\.com .*sent to evil\.example/],
    [
      'a host that ends like it',
      {},
      'https://notgithub.com',
      /^SecretHostNotAllowed: the token of this GitHub App is for github\.com/,
    ],
    [
      'github.com with the app of another server',
      { baseURL: 'https://ghe.example/api/v3' },
      'https://github.com',
      /^SecretHostNotAllowed: .*for ghe\.example/,
    ],
  ])('%s', async (_what, changes, url, expected) => {
    const tokens = new GitHubAppTokens(new FakeClock(), NEVER);
    const [protocol = '', host = ''] = url.split('://') as ['https', string];
    const request = { app: { ...APP, ...changes }, remote: { protocol, host }, timeoutMs: 1 } as const;
    const error = await tokens.credential(request as never, NEVER).catch((reason: unknown) => reason);
    if (!(error instanceof PolicyError)) throw error;
    expect(error.policy).toBe('Waiting');
    expect(`${error.reason}: ${error.message}`).toMatch(expected);
  });
});

describe('pauseMs', () => {
  const now = Date.UTC(2026, 0, 1);
  const reset = (seconds: number) => ({
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': String(now / 1000 + seconds),
  });
  test.each<[headers: Record<string, string>, ms: number]>([
    [{ 'retry-after': '30' }, 30_000],
    [{ 'retry-after': new Date(now + 90_000).toUTCString() }, 90_000],
    [{ 'retry-after': '5', ...reset(600) }, 5_000],
    [reset(600), 600_000],
    [reset(-5), 1_000],
    [reset(90_000), 3_600_000],
    [{ 'x-ratelimit-remaining': '7', 'x-ratelimit-reset': '1' }, 60_000],
    [{ 'retry-after': 'soon' }, 60_000],
    [{}, 60_000],
  ])('%j', (headers, ms) => expect(pauseMs((name) => headers[name], now)).toBe(ms));
});
