import { describe, expect, test } from 'vitest';
import { redact } from '../../../src/base/redact.ts';
import { classifyProxyError } from '../../../src/marketplace/errors.proxy.ts';
import type { GitProxy } from '../../../src/marketplace/port.ts';
import { isDirect, proxyFor, withUserinfo } from '../../../src/marketplace/proxy.ts';
import { parseUrl } from '../../../src/marketplace/url.ts';
import { thrown } from './failure.ts';

const https = parseUrl('https://git.example.com/x.git');

describe('isDirect', () => {
  test.each<[noProxy: string | undefined, host: string, direct: boolean]>([
    [undefined, 'git.example.com', false],
    ['', 'git.example.com', false],
    ['*', 'git.example.com', true],
    ['git.example.com', 'git.example.com', true],
    ['GIT.Example.com', 'git.example.com', true],
    ['other, git.example.com', 'git.example.com', true],
    ['other git.example.com', 'git.example.com', true],
    ['example.com', 'git.example.com', true],
    ['.example.com', 'git.example.com', true],
    ['*.example.com', 'git.example.com', true],
    ['.example.com', 'example.com', true],
    ['ample.com', 'example.com', false],
    ['.', 'example.com', false],
    ['git.example.com:443', 'git.example.com', true],
    ['git.example.com:8443', 'git.example.com', false],
    ['10.0.0.0/8', '10.1.2.3', true],
    ['10.0.0.0/8', '11.1.2.3', false],
    ['10.0.0.0/99', '10.1.2.3', false],
    ['10.0.0.0/8', 'ten.example.com', false],
    ['10.1.2.3', '10.1.2.3', true],
    ['2.3', '10.1.2.3', false],
    ['fd00::/8', '[fd00::1]', true],
    ['fd00::/8', '10.1.2.3', false],
    ['[fd00::1]:443', '[fd00::1]', true],
    ['fd00::1', '[fd00::1]', true],
  ])('%j and %s', (noProxy, host, direct) => expect(isDirect(noProxy, { host, port: 443 })).toBe(direct));
});

describe('proxyFor', () => {
  const settings = {
    http: 'http://plain:3128',
    https: 'http://user:p%40ss@secure:3129',
    noProxy: 'direct.example.com',
  };

  test.each<[what: string, url: string, own: GitProxy | undefined, expected: object | undefined]>([
    [
      'https',
      'https://h/x',
      undefined,
      { url: 'http://secure:3129', username: 'user', password: 'p@ss', from: 'settings' },
    ],
    ['http', 'http://h/x', undefined, { url: 'http://plain:3128', from: 'settings' }],
    ['ssh goes directly', 'ssh://git@h/x', undefined, undefined],
    ['NO_PROXY', 'https://direct.example.com/x', undefined, undefined],
    [
      'the Secret goes before all that',
      'https://direct.example.com/x',
      { address: 'https://own.example.com', username: 'u', password: 'p-w-d' },
      { url: 'https://own.example.com:443', username: 'u', password: 'p-w-d', from: 'secret' },
    ],
    ['hosts that fit', 'https://h/x', { address: 'http://p:1', hosts: ['p:1'] }, { host: 'p', port: 1 }],
  ])('%s', (_what, url, own, expected) => {
    const route = proxyFor(parseUrl(url), own, settings);
    if (expected) expect(route).toMatchObject(expected);
    else expect(route).toBeUndefined();
  });

  test.each<[what: string, url: string, own: GitProxy, expected: string]>([
    [
      'ssh',
      'ssh://git@h/x',
      { address: 'http://p:1' },
      'Stalled InvalidSpec: an ssh URL goes through no proxy: use the https URL of the repository, or remove proxySecretRef',
    ],
    [
      'socks',
      'https://h/x',
      { address: 'socks5://p:1' },
      'Waiting SecretInvalid: address in the Secret of proxySecretRef is no http or https address: write it like http://proxy.example.com:3128',
    ],
    [
      'a path',
      'https://h/x',
      { address: 'http://p:1/x' },
      'Waiting SecretInvalid: address in the Secret of proxySecretRef has more than host and port: write it like http://proxy.example.com:3128',
    ],
    [
      'a password in the address, which is not repeated',
      'https://h/x',
      { address: 'http://u:canary@p:1' },
      'Waiting SecretInvalid: address in the Secret of proxySecretRef contains a user name: put it into the keys username and password',
    ],
    [
      'a user without password',
      'https://h/x',
      { address: 'http://p:1', username: 'u' },
      'Waiting SecretInvalid: the Secret of proxySecretRef has username but no password: give both or none',
    ],
    [
      'a password of two lines',
      'https://h/x',
      { address: 'http://p:1', username: 'u', password: 'a\nb' },
      'Waiting SecretInvalid: username or password in the Secret of proxySecretRef contains control characters: store the value alone, on one line',
    ],
    [
      'another host than the annotation names',
      'https://h/x',
      { address: 'http://p:1', hosts: ['q'] },
      'Waiting SecretHostNotAllowed: the Secret of proxySecretRef may not be sent to p: add the host to its annotation skills.tfrobot.io/hosts, or correct its address',
    ],
  ])('refuses %s', (_what, url, own, expected) => {
    expect(thrown(() => proxyFor(parseUrl(url), own))).toBe(expected);
  });
});

test('the password is part of what Git gets, and masked from then on', () => {
  const route = proxyFor(https, { address: 'http://p:1', username: 'u@x', password: 'canary:pass/word' });
  const text = route && withUserinfo(route);
  expect(text).toBe('http://u%40x:canary%3Apass%2Fword@p:1');
  expect(redact(`${text} canary:pass/word`)).not.toMatch(/canary/);
});

describe('classifyProxyError', () => {
  const proxy = { host: 'proxy', port: 3128, from: 'secret' } as const;
  const said = (stderr: string) => {
    const error = classifyProxyError(proxy, 'git.example.com', stderr);
    return error && `${error.policy} ${error.reason}: ${error.message}`;
  };

  test.each<[stderr: string, expected: string | undefined]>([
    [
      "fatal: unable to access 'https://h/x/': Received HTTP code 407 from proxy after CONNECT",
      'Waiting ProxyAuthFailed: the proxy proxy:3128 asks for other credentials: correct username and password in the Secret of proxySecretRef',
    ],
    [
      "fatal: unable to access 'https://h/x/': CONNECT tunnel failed, response 407",
      'Waiting ProxyAuthFailed: the proxy proxy:3128 asks for other credentials: correct username and password in the Secret of proxySecretRef',
    ],
    [
      "fatal: unable to access 'http://h/x/': The requested URL returned error: 407",
      'Waiting ProxyAuthFailed: the proxy proxy:3128 asks for other credentials: correct username and password in the Secret of proxySecretRef',
    ],
    [
      "fatal: unable to access 'https://h/x/': Received HTTP code 403 from proxy after CONNECT",
      'Waiting ProxyRefused: the proxy proxy:3128 does not let connections to git.example.com through (it answers 403): allow the host there, or use another proxy',
    ],
    [
      "fatal: unable to access 'https://h/x/': CONNECT tunnel failed, response 502",
      'Retry ProxyUnreachable: the proxy proxy:3128 did not reach git.example.com (it answers 502): the operator tries again by itself; if it stays, look at the proxy and at the host in the URL',
    ],
    [
      "fatal: unable to access 'https://h/x/': Could not resolve proxy: proxy",
      "Retry ProxyUnreachable: no connection to the proxy proxy:3128: check the address in the Secret of proxySecretRef, the proxy, and the network policies of the operator's namespace",
    ],
    [
      "fatal: unable to access 'https://h/x/': Failed to connect to proxy port 3128 after 2 ms: Couldn't connect to server",
      "Retry ProxyUnreachable: no connection to the proxy proxy:3128: check the address in the Secret of proxySecretRef, the proxy, and the network policies of the operator's namespace",
    ],
    ["fatal: unable to access 'https://h/x/': The requested URL returned error: 403", undefined],
    ["fatal: repository 'https://h/x/' not found", undefined],
    ['fatal: unable to access: SSL certificate problem: unable to get local issuer certificate', undefined],
  ])('%s', (stderr, expected) => expect(said(stderr)).toBe(expected));
});
