import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { holdSecret, redact } from '../../../src/base/redact.ts';

let counter = 0;
/** A value that no other test has registered. */
const fresh = (prefix: string): string => `${prefix}-${++counter}-${process.hrtime.bigint().toString(36)}`;

describe('redact', () => {
  it.each<[string, string, string]>([
    [
      'a password in a URL',
      'fatal: https://bot:hunter2@git.example.com/x.git',
      'fatal: https://***@git.example.com/x.git',
    ],
    ['a token as user name', 'https://token123@git.example.com/x', 'https://***@git.example.com/x'],
    ['an ssh user name is none', 'ssh://git@git.example.com/x', 'ssh://git@git.example.com/x'],
    ['an ssh password', 'ssh://git:hunter2@git.example.com/x', 'ssh://***@git.example.com/x'],
    ['a signed query', 'GET http://s3/b/k?X-Amz-Signature=abc&x=1 failed', 'GET http://s3/b/k?*** failed'],
    ['an authorization header', 'Authorization: Basic dGVzdDp0ZXN0', 'Authorization: ***'],
    ['the same in lower case, with =', 'authorization=Bearer abc.def', 'authorization=***'],
    ['a bearer token', 'sent bearer abcdefgh12345678', 'sent bearer ***'],
    ['a short word after bearer is none', 'bearer of news', 'bearer of news'],
    ['a private key', 'x -----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY----- y', 'x *** y'],
    ['a private key that was cut', 'x -----BEGIN RSA PRIVATE KEY-----\nAAAA', 'x ***'],
    ['a GitHub token', 'ghp_0123456789abcdefABCD was refused', '*** was refused'],
    ['an access key id', 'key AKIAABCDEFGHIJKLMNOP', 'key ***'],
    ['ordinary text', 'plugins/docs/skills/pdf: name: line 2', 'plugins/docs/skills/pdf: name: line 2'],
  ])('masks by shape: %s', (_, text, expected) => {
    expect(redact(text)).toBe(expected);
  });

  it('masks a held value in every form that it takes in text', () => {
    const value = `${fresh('p"w\\d')}/+ä`;
    holdSecret(value);
    const base64 = Buffer.from(value).toString('base64');
    const shown = [value, encodeURIComponent(value), JSON.stringify({ value }), base64, base64.replaceAll('=', '')];
    for (const form of shown) {
      const masked = redact(`before ${form} after`);
      expect(masked).toContain('***');
      expect(masked).not.toContain(value.slice(-8, -3));
    }
  });

  it('masks every line of a key, and not the guard lines that every key shares', () => {
    const [one, two] = [fresh('line'), fresh('line')];
    holdSecret(`-----BEGIN THING-----\n${one}\r\n${two}\n-----END THING-----\n`);
    expect(redact(`${two} -----BEGIN THING----- ${one}`)).toBe('*** -----BEGIN THING----- ***');
  });

  it('masks the longer of two values that begin alike', () => {
    const value = fresh('begin');
    holdSecret(value);
    holdSecret(`${value}-and-more`);
    expect(redact(`${value}-and-more ${value}`)).toBe('*** ***');
  });

  it('leaves values alone that are too short to be told from ordinary text', () => {
    holdSecret('abc');
    holdSecret('  \n \n');
    expect(redact('abc abc')).toBe('abc abc');
  });

  it('takes characters of regular expressions for what they are', () => {
    const value = `${fresh('a')}.*(x|y)[z]{2}^$\\`;
    holdSecret(value);
    expect(redact(`x${value}x`)).toBe('x***x');
  });

  it('never throws, whatever was held and whatever is said', () => {
    holdSecret(`${fresh('surrogate')}\ud800`);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (value, text) => {
        holdSecret(`held-${value}`);
        expect(redact(`${text}held-${value}`)).not.toContain(
          value.trim().length > 8 ? `held-${value.trim()}` : '\0\0\0',
        );
      }),
    );
  });

  it('goes on when somebody stores large values, and forgets the oldest of them only', () => {
    const before = fresh('kept');
    holdSecret(before);
    for (let i = 0; i < 3; i++) holdSecret(`${fresh('large')}${'x'.repeat(64 * 1024)}`);
    holdSecret(Array.from({ length: 2_000 }, (_, i) => `line-${i}-${before}`).join('\n'));
    expect(redact(`it is ${before}!`)).toBe('it is ***!');
    for (let i = 0; i < 40; i++) holdSecret(`${fresh('flood')}${'y'.repeat(64 * 1024)}`);
    const last = fresh('last');
    holdSecret(last);
    expect(redact(`${last} ${before}`)).toBe(`*** ${before}`);
  });

  it('takes milliseconds for a large text', () => {
    const text = 'plugins/docs/skills/pdf '.repeat(4_000);
    const started = performance.now();
    redact(text);
    expect(performance.now() - started).toBeLessThan(500);
  });
});
