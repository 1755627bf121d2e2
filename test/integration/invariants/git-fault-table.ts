import { generateKeyPairSync } from 'node:crypto';
import { inject } from 'vitest';
import { ANNOTATIONS } from '../../../src/api/labels.ts';
import type { REASONS } from '../../../src/base/reasons.ts';
import { newAppKey } from '../../support/github-api.ts';
import { newRepository } from '../../support/market.ts';
import { type GitWorld, ORIGIN, otherHostKey } from './git-world.ts';

/** A source cannot be read: the spec, the reason, whether somebody outside must act, and what the message says. */
export interface Fault {
  title: string;
  spec: () => Promise<Record<string, unknown>> | Record<string, unknown>;
  reason: keyof typeof REASONS;
  policy: 'Stalled' | 'Waiting' | 'Retry';
  says: RegExp;
}

const otherKey = () =>
  `-----BEGIN PRIVATE KEY-----\n${generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs8', format: 'der' })
    .toString('base64')
    .replaceAll(/(.{64})/g, '$1\n')}\n-----END PRIVATE KEY-----\n`;

/** Every way in which a source cannot be read that a spec, a Secret or a server can bring about. */
export function gitFaults(world: GitWorld): Fault[] {
  const { git } = inject('cluster');
  const app = { githubAppID: '1', githubAppInstallationID: '2' };
  return [
    {
      title: 'no credentials where some are needed',
      spec: () => ({ git: { url: world.url('privateUrl') } }),
      reason: 'AuthenticationFailed',
      policy: 'Waiting',
      says: /asks for credentials: name a Secret/,
    },
    {
      title: 'a wrong password',
      spec: () => world.withSecret(world.url('privateUrl'), { username: git.username, password: 'wrong-password' }),
      reason: 'AuthenticationFailed',
      policy: 'Waiting',
      says: /refused the credentials/,
    },
    {
      title: 'a wrong bearer token',
      spec: () => world.withSecret(world.url('privateUrl'), { bearerToken: 'wrong-token-1' }),
      reason: 'AuthenticationFailed',
      policy: 'Waiting',
      says: /refused the credentials/,
    },
    {
      title: 'a Secret that does not exist',
      spec: () => ({ git: { url: world.url('privateUrl') }, secretRef: { name: 'nobody' } }),
      reason: 'SecretNotFound',
      policy: 'Waiting',
      says: /Secret "nobody" does not exist in namespace/,
    },
    {
      title: 'a Secret without a usable key',
      spec: () => world.withSecret(world.url('privateUrl'), { token: 'canary-token' }),
      reason: 'SecretInvalid',
      policy: 'Waiting',
      says: /has none of the keys that hold a credential/,
    },
    {
      title: 'a Secret with a line break inside the token',
      spec: () => world.withSecret(world.url('privateUrl'), { bearerToken: 'two\nlines-of-it' }),
      reason: 'SecretInvalid',
      policy: 'Waiting',
      says: /control characters/,
    },
    {
      title: 'a GitHub App without its key',
      spec: () => world.withSecret(world.url('privateUrl'), { githubAppID: '1' }),
      reason: 'SecretInvalid',
      policy: 'Waiting',
      says: /has githubAppID but no githubAppPrivateKey/,
    },
    {
      title: 'a GitHub App of another host',
      spec: () => world.withSecret(world.url('httpsUrl'), { ...app, githubAppPrivateKey: newAppKey() }),
      reason: 'SecretHostNotAllowed',
      policy: 'Waiting',
      says: /token of this GitHub App is for github\.com/,
    },
    {
      title: 'a GitHub App whose server is not there',
      spec: () =>
        world.withSecret(world.url('httpsUrl'), {
          ...{ ...app, githubAppPrivateKey: newAppKey(), githubAppBaseURL: 'https://127.0.0.1:1/api/v3' },
          'ca.crt': git.caCert,
        }),
      reason: 'GitUnreachable',
      policy: 'Retry',
      says: /no connection to 127\.0\.0\.1:1 .*githubAppBaseURL/,
    },
    {
      title: 'a proxy that is not there',
      spec: async () => ({
        git: { url: world.url('httpUrl') },
        proxySecretRef: { name: await world.secret({ address: 'http://127.0.0.1:1' }) },
      }),
      reason: 'ProxyUnreachable',
      policy: 'Retry',
      says: /no connection to the proxy 127\.0\.0\.1:1/,
    },
    {
      title: 'a proxy Secret without address',
      spec: async () => ({
        git: { url: world.url('httpUrl') },
        proxySecretRef: { name: await world.secret({ username: 'u', password: 'canary-p' }) },
      }),
      reason: 'SecretInvalid',
      policy: 'Waiting',
      says: /of proxySecretRef has no address/,
    },
    {
      title: 'ssh through a proxy',
      spec: async () => ({
        ...(await world.withSecret(world.url('sshUrl'), {
          ...{ identity: git.sshIdentity, known_hosts: git.sshKnownHosts },
        })),
        proxySecretRef: { name: await world.secret({ address: 'http://127.0.0.1:1' }) },
      }),
      reason: 'InvalidSpec',
      policy: 'Stalled',
      says: /ssh URL goes through no proxy/,
    },
    {
      title: 'a Secret bound to another host',
      spec: () =>
        world.withSecret(
          world.url('privateUrl'),
          { bearerToken: git.bearerToken },
          { [ANNOTATIONS.hosts]: 'git.example.com' },
        ),
      reason: 'SecretHostNotAllowed',
      policy: 'Waiting',
      says: /may not be sent to 127\.0\.0\.1/,
    },
    {
      title: 'a branch that does not exist',
      spec: () => ({ git: { url: world.url('httpUrl') }, ref: { branch: 'nowhere' } }),
      reason: 'RefNotFound',
      policy: 'Waiting',
      says: /nowhere/,
    },
    {
      title: 'a tag range that nothing matches',
      spec: () => ({ git: { url: world.url('httpUrl') }, ref: { semver: '>=9' } }),
      reason: 'RefNotFound',
      policy: 'Waiting',
      says: />=9/,
    },
    {
      title: 'a commit that does not exist',
      spec: () => ({ git: { url: world.url('httpUrl') }, ref: { commit: '9'.repeat(40) } }),
      reason: 'RefNotFound',
      policy: 'Waiting',
      says: /9{40}/,
    },
    {
      title: 'a repository that does not exist',
      spec: () => ({ git: { url: world.url('httpUrl', 'no-such-one') } }),
      reason: 'RepositoryNotFound',
      policy: 'Waiting',
      says: /no such repository/,
    },
    {
      title: 'a directory that does not exist',
      spec: () => ({ type: 'git-subdir', gitSubdir: { url: world.url('httpUrl'), path: 'no/where' } }),
      reason: 'PathNotFound',
      policy: 'Stalled',
      says: /no\/where/,
    },
    {
      title: 'a redirect, with credentials',
      spec: () =>
        world.withSecret(`${ORIGIN}/redirect/${world.repository.name}.git`, {
          username: git.username,
          password: git.password,
        }),
      reason: 'RedirectRefused',
      policy: 'Waiting',
      says: /redirects to another address/,
    },
    {
      title: 'HTTP 429',
      // With a Secret of its own: who comes with the same one is kept from the host for a while.
      spec: () => world.withSecret(`${ORIGIN}/status/429/x.git`, { bearerToken: 'limited-token' }),
      reason: 'GitRateLimited',
      policy: 'Waiting',
      says: /asks to slow down/,
    },
    {
      title: 'HTTP 503',
      spec: () => ({ git: { url: `${ORIGIN}/status/503/x.git` } }),
      reason: 'GitUnreachable',
      policy: 'Retry',
      says: /server error 503/,
    },
    {
      title: 'a port where nobody listens',
      spec: () => ({ git: { url: 'http://127.0.0.1:9/x.git' } }),
      reason: 'GitUnreachable',
      policy: 'Retry',
      says: /no connection to 127\.0\.0\.1:9/,
    },
    {
      title: 'a host name that does not resolve',
      spec: () => ({ git: { url: 'http://git.invalid/x.git' } }),
      reason: 'GitUnreachable',
      policy: 'Retry',
      says: /git\.invalid does not resolve/,
    },
    {
      title: 'a server that never answers',
      spec: () => ({ git: { url: `${ORIGIN}/silent/x.git` }, timeout: '1s' }),
      reason: 'GitTimeout',
      policy: 'Retry',
      says: /1 ?s|1000 ms/,
    },
    {
      title: 'a certificate of an unknown authority',
      spec: () => ({ git: { url: world.url('httpsUrl') } }),
      reason: 'TLSVerificationFailed',
      policy: 'Waiting',
      says: /put the issuing CA into ca\.crt/,
    },
    {
      title: 'a ca.crt that is no certificate',
      spec: () => world.withSecret(world.url('httpsUrl'), { 'ca.crt': 'no pem' }),
      reason: 'SecretInvalid',
      policy: 'Waiting',
      says: /ca\.crt in the Secret holds no PEM certificate/,
    },
    {
      title: 'ssh without a Secret',
      spec: () => ({ git: { url: world.url('sshUrl') } }),
      reason: 'SecretInvalid',
      policy: 'Waiting',
      says: /needs the key identity/,
    },
    {
      title: 'an ssh key that is none',
      spec: () => world.withSecret(world.url('sshUrl'), { identity: 'no key at all', known_hosts: git.sshKnownHosts }),
      reason: 'SecretInvalid',
      policy: 'Waiting',
      says: /identity in the Secret/,
    },
    {
      title: 'an ssh key that the server does not know',
      spec: () => world.withSecret(world.url('sshUrl'), { identity: otherKey(), known_hosts: git.sshKnownHosts }),
      reason: 'AuthenticationFailed',
      policy: 'Waiting',
      says: /refused the ssh key/,
    },
    {
      title: 'another host key than known_hosts lists',
      spec: () => world.withSecret(world.url('sshUrl'), { identity: git.sshIdentity, known_hosts: otherHostKey() }),
      reason: 'HostKeyMismatch',
      policy: 'Waiting',
      says: /shows another host key .*ssh-keyscan -p \d+ 127\.0\.0\.1/,
    },
    {
      title: 'a host that known_hosts does not list',
      spec: () =>
        world.withSecret(world.url('sshUrl'), {
          identity: git.sshIdentity,
          known_hosts: git.sshKnownHosts.replace('127.0.0.1', '127.0.0.9'),
        }),
      reason: 'HostKeyUnknown',
      policy: 'Waiting',
      says: /known_hosts has no usable key/,
    },
    {
      title: 'an address without a repository',
      spec: () => ({ git: { url: ORIGIN } }),
      reason: 'URLInvalid',
      policy: 'Stalled',
      says: /names no repository/,
    },
    {
      title: 'an address with an encoded line break',
      spec: () => ({ git: { url: `${ORIGIN}/x%0ay.git` } }),
      reason: 'URLInvalid',
      policy: 'Stalled',
      says: /encoded control character/,
    },
    {
      title: 'an address with a quote',
      spec: () => ({ git: { url: `${ORIGIN}/x'y.git` } }),
      reason: 'URLInvalid',
      policy: 'Stalled',
      says: /quotes/,
    },
    {
      title: 'an address with a port that there is none of',
      spec: () => ({ git: { url: 'http://127.0.0.1:99999/x.git' } }),
      reason: 'URLInvalid',
      policy: 'Stalled',
      says: /port outside/,
    },
    {
      title: 'an empty repository',
      spec: async () => ({ git: { url: world.url('httpUrl', (await newRepository(world.operator, 'empty')).name) } }),
      reason: 'EmptyRepository',
      policy: 'Waiting',
      says: /no commit|empty/,
    },
    {
      title: 'a kind whose hands come later',
      spec: () => ({ type: 'archive', archive: { objectKey: `uploads/x/${'a'.repeat(64)}` } }),
      reason: 'NotSupportedYet',
      policy: 'Stalled',
      says: /spec\.archive is not supported/,
    },
  ];
}
