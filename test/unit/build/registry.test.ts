import { describe, expect, test } from 'vitest';
import { DeadlineExceeded } from '../../../src/base/deadline.ts';
import { stalled } from '../../../src/base/errors.ts';
import { type Challenge, parseChallenge } from '../../../src/build/challenge.ts';
import { refused, unanswered } from '../../../src/build/registry.errors.ts';
import { HttpRegistry } from '../../../src/build/registry.ts';
import { formatResult, parseResult } from '../../../src/build/result.ts';
import { thrown } from '../marketplace/failure.ts';
import { hex } from './samples.ts';

describe('parseChallenge', () => {
  const bearer = (change: Partial<Challenge>) => ({ scheme: 'bearer', realm: 'https://auth/token', ...change });
  test.each<[string, unknown]>([
    ['Basic realm="x"', { scheme: 'basic' }],
    ['basic', { scheme: 'basic' }],
    ['Bearer realm="https://auth/token"', bearer({})],
    [
      'Bearer realm="https://auth/token",service="registry",scope="repository:a/b:pull,push"',
      bearer({ service: 'registry', scope: 'repository:a/b:pull,push' } as never),
    ],
    ['BEARER realm=https://auth/token , service="a\\"b"', bearer({ service: 'a"b' } as never)],
    ['Basic realm="x", Bearer realm="https://auth/token"', bearer({})],
    ['Bearer', undefined],
    ['Negotiate', undefined],
    ['', undefined],
  ])('%s', (header, expected) => {
    const found = parseChallenge([header]);
    expect(found && JSON.parse(JSON.stringify(found))).toEqual(expected);
  });
});

const CALL = { host: 'registry:5000', action: 'reading team/pdf:1' };
const NOW = Date.parse('2026-05-01T12:00:00Z');
const answer = (status: number, text = '', retryAfter?: string) => refused(CALL, { status, text, retryAfter }, NOW);

describe('refused', () => {
  test.each<[number, string, string]>([
    [401, 'Waiting', 'RegistryAuthFailed'],
    [403, 'Waiting', 'RegistryDenied'],
    [408, 'Retry', 'RegistryUnavailable'],
    [429, 'Retry', 'RegistryRateLimited'],
    [500, 'Retry', 'RegistryUnavailable'],
    [503, 'Retry', 'RegistryUnavailable'],
    [400, 'Retry', 'RegistryUnexpectedAnswer'],
    [418, 'Retry', 'RegistryUnexpectedAnswer'],
  ])('%d is %s %s', (status, policy, reason) => {
    expect(answer(status)).toMatchObject({ policy, reason });
  });

  test.each<[string | undefined, number]>([
    ['7', 7000],
    ['Fri, 01 May 2026 12:01:00 GMT', 60_000],
    ['Fri, 01 May 2020 12:01:00 GMT', 0],
    ['999999', 900_000],
    ['soon', 30_000],
    [undefined, 30_000],
  ])('waits as Retry-After %s says: %d ms', (header, expected) => {
    expect(answer(429, '', header).retryAfterMs).toBe(expected);
  });

  test('quotes the registry, cut and on one line', () => {
    const text = JSON.stringify({ errors: [{ code: 'DENIED', message: `no\n${'x'.repeat(900)}` }] });
    expect(answer(403, text).message.length).toBeLessThan(450);
    expect(answer(403, '{"errors":[{"code":"DENIED","message":"no\\nway"}]}').message).toMatchInlineSnapshot(
      `"registry registry:5000 answered 403 (DENIED no way) to reading team/pdf:1; give the operator's account that right below its repository prefix"`,
    );
    expect(answer(502, '<html>').message).toMatchInlineSnapshot(
      `"registry registry:5000 answered 502 to reading team/pdf:1; it is tried again, check that the registry is well"`,
    );
  });
});

describe('unanswered', () => {
  test.each<[string, unknown, string, string]>([
    ['nobody listens', Object.assign(new Error('x'), { code: 'ECONNREFUSED' }), 'Retry', 'RegistryUnavailable'],
    [
      'cut',
      new Error('x', { cause: Object.assign(new Error('y'), { code: 'ECONNRESET' }) }),
      'Retry',
      'RegistryUnavailable',
    ],
    ['late', new DeadlineExceeded(5), 'Retry', 'RegistryUnavailable'],
    [
      'untrusted',
      Object.assign(new Error('x'), { code: 'SELF_SIGNED_CERT_IN_CHAIN' }),
      'Waiting',
      'RegistryConfigInvalid',
    ],
    ['something thrown', 'text', 'Retry', 'RegistryUnavailable'],
  ])('%s', (_name, error, policy, reason) => {
    expect(unanswered(CALL, error)).toMatchObject({ policy, reason });
  });

  test('leaves an error that has its reason as it is', () => {
    const error = stalled('ImageInvalid', 'x');
    expect(unanswered(CALL, error)).toBe(error);
  });
});

describe('HttpRegistry', () => {
  test.each(['', 'host/path', 'user@host', 'host?x', 'a b'])('refuses %j as a host', (host) => {
    expect(thrown(() => new HttpRegistry({ host }))).toMatch(/^Waiting RegistryConfigInvalid: /);
  });
});

describe('the result of a push', () => {
  const RESULT = { digest: `sha256:${hex('7')}`, size: 12 };
  test('is read as it was written', () => {
    expect(parseResult(formatResult(RESULT))).toEqual(RESULT);
  });

  test.each<[string, string | undefined]>([
    ['nothing', undefined],
    ['no JSON', 'sha256:12'],
    ['null', 'null'],
    ['a digest of other length', JSON.stringify({ ...RESULT, digest: 'sha256:12' })],
    ['upper case', JSON.stringify({ ...RESULT, digest: `sha256:${hex('A')}` })],
    ['a size that is text', JSON.stringify({ ...RESULT, size: '12' })],
    ['half a byte', JSON.stringify({ ...RESULT, size: 0.5 })],
    ['too long a text', `${JSON.stringify(RESULT)}${' '.repeat(5000)}`],
  ])('is none when it is %s', (_name, text) => {
    expect(parseResult(text)).toBeUndefined();
  });
});
