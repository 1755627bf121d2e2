import { describe, expect, test } from 'vitest';
import { redact } from '../../../src/base/redact.ts';
import { tokenOf } from '../../../src/webhook/secret.ts';

const secret = (data: Record<string, string>) => ({
  metadata: { name: 'hook', namespace: 'team' },
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
});

describe('tokenOf', () => {
  test('gives the token without a final newline, and the redactor knows it', () => {
    expect(tokenOf(secret({ token: 'hook-token-4711x\n' }))).toBe('hook-token-4711x');
    expect(redact('it is hook-token-4711x')).toBe('it is ***');
  });
  test.each<[string, Record<string, string>]>([
    ['no key', { other: 'x' }],
    ['an empty one', { token: '\n' }],
    ['a short one', { token: 'hook-token-4711' }],
    ['a huge one', { token: 'hook-'.repeat(820) }],
  ])('refuses %s with the command that makes one', (_title, data) => {
    expect(() => tokenOf(secret(data))).toThrow(/kubectl -n team create secret generic hook --from-literal=token=/);
  });
  test('says what is wrong, never the token', () => {
    const messageOf = (data: Record<string, string>) => {
      try {
        tokenOf(secret(data));
        return '';
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(messageOf({})).toMatchInlineSnapshot(
      `"Secret "hook" has no key "token", so webhook deliveries are refused; kubectl -n team create secret generic hook --from-literal=token="$(openssl rand -hex 32)" makes one, and the Git host gets the same token"`,
    );
    expect(messageOf({ token: 'hook-short' })).toMatchInlineSnapshot(
      `"Secret "hook" has a "token" that is not 16 to 4096 characters long, so webhook deliveries are refused; kubectl -n team create secret generic hook --from-literal=token="$(openssl rand -hex 32)" makes one, and the Git host gets the same token"`,
    );
  });
});
