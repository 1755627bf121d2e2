import { describe, expect, test } from 'vitest';
import { redact } from '../../../src/base/redact.ts';
import { registryCredential } from '../../../src/build/dockerconfig.ts';
import { thrown } from '../marketplace/failure.ts';

const auth = (text: string) => Buffer.from(text).toString('base64');
const ENTRY = { auth: auth('robot:pa:ss-word') };
const WANTED = { host: 'registry.example.com:5000', repository: 'skills/team/pdf' };
const read = (config: unknown, wanted = WANTED) =>
  registryCredential(typeof config === 'string' ? config : JSON.stringify(config), wanted, 'Secret "push"');

describe('registryCredential', () => {
  test.each<[string, Record<string, unknown>, string?]>([
    ['the host', { 'registry.example.com:5000': ENTRY }],
    ['a URL', { 'https://registry.example.com:5000/v2/': ENTRY }],
    ['another case', { 'Registry.Example.com:5000': ENTRY }],
    ['user and password', { 'registry.example.com:5000': { username: 'robot', password: 'pa:ss-word' } }],
    ['a path that covers the repository', { 'registry.example.com:5000/skills': ENTRY }],
    ['Docker Hub under its old name', { 'https://index.docker.io/v1/': ENTRY }, 'docker.io'],
  ])('finds an entry by %s', (_name, auths, host = WANTED.host) => {
    expect(read({ auths }, { ...WANTED, host })).toEqual({ username: 'robot', password: 'pa:ss-word' });
  });

  test('takes the entry whose path is the longest that covers the repository', () => {
    const auths = {
      'registry.example.com:5000': { auth: auth('all:1234') },
      'registry.example.com:5000/skills/team': { auth: auth('team:1234') },
      'registry.example.com:5000/skills/tea': { auth: auth('other:1234') },
    };
    expect(read({ auths }).username).toBe('team');
  });

  test.each<[string, unknown]>([
    ['no JSON', '{"auths": {"x": "secret'],
    ['a list', []],
    ['no entry', { auths: {} }],
    ['an entry of another port', { auths: { 'registry.example.com:5001': ENTRY } }],
    ['an entry without password', { auths: { 'registry.example.com:5000': { auth: auth('robot') } } }],
    ['a token of a login', { auths: { 'registry.example.com:5000': { identitytoken: 'eyJtoken' } } }],
    ['a helper', { credHelpers: { 'registry.example.com:5000': 'ecr-login' } }],
    ['a store', { auths: { 'registry.example.com:5000': {} }, credsStore: 'desktop' }],
    ['too much', `{"x":"${'y'.repeat(300_000)}"}`],
  ])('refuses %s', (_name, config) => {
    expect(thrown(() => read(config))).toMatch(/^Waiting RegistryConfigInvalid: /);
  });

  test('prefers an entry to a helper, which is never run', () => {
    expect(read({ auths: { 'registry.example.com:5000': ENTRY }, credsStore: 'desktop' }).username).toBe('robot');
  });

  test('says what to type', () => {
    const configs = ['{', { auths: {} }, { credsStore: 'desktop' }, { auths: { 'registry.example.com:5000': {} } }];
    expect(configs.map((config) => thrown(() => read(config)))).toMatchInlineSnapshot(`
      [
        "Waiting RegistryConfigInvalid: Secret "push" is no Docker config of at most 256 KiB; create it with kubectl create secret docker-registry --docker-server=registry.example.com:5000",
        "Waiting RegistryConfigInvalid: Secret "push" has no entry for registry.example.com:5000; create it with kubectl create secret docker-registry --docker-server=registry.example.com:5000",
        "Waiting RegistryConfigInvalid: Secret "push" leaves the password for registry.example.com:5000 to a credential helper, which is a program of your own machine; create it with kubectl create secret docker-registry --docker-server=registry.example.com:5000",
        "Waiting RegistryConfigInvalid: Secret "push" has an entry for registry.example.com:5000 without user and password; create it with kubectl create secret docker-registry --docker-server=registry.example.com:5000",
      ]
    `);
  });

  test('registers every secret with the redactor', () => {
    read({
      auths: { 'registry.example.com:5000': { auth: auth('robot:very-secret-1'), identitytoken: 'very-secret-2' } },
    });
    expect(redact(`very-secret-1 very-secret-2 ${auth('robot:very-secret-1')}`)).toBe('*** *** ***');
  });
});
