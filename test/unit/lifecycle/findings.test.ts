import { describe, expect, test } from 'vitest';
import { clip } from '../../../src/lifecycle/condition.ts';
import { fitFindings, invalidMessage } from '../../../src/lifecycle/findings.ts';

const finding = (n: number, size = 20) => ({
  code: `c${n}`,
  path: 'SKILL.md',
  line: n,
  message: 'm'.repeat(size),
  hint: 'h'.repeat(size),
});
const many = (n: number, size?: number) => Array.from({ length: n }, (_, i) => finding(i + 1, size));

describe('fitFindings', () => {
  test('lists at most twenty', () => expect(fitFindings(many(30))).toHaveLength(20));
  test('stays below 5 KiB, whatever the texts are', () => {
    const fitted = fitFindings(many(30, 9000));
    expect(fitted.length).toBeGreaterThan(2);
    expect(Buffer.byteLength(JSON.stringify(fitted))).toBeLessThan(5 * 1024 + 100);
  });
  test('keeps the first one even if it is large, and leaves out absent positions', () => {
    expect(fitFindings([{ code: 'c', path: '', message: 'm', hint: 'é'.repeat(6000) }])).toEqual([
      { code: 'c', path: '', message: 'm', hint: `${'é'.repeat(511)}…` },
    ]);
  });
  test('masks what looks like a secret', () => {
    expect(fitFindings([{ code: 'c', path: 'p', message: 'https://a:hunter22@h/', hint: '' }])[0]?.message).toBe(
      'https://***@h/',
    );
  });
});

describe('invalidMessage', () => {
  test('names file, line and fix', () => {
    expect(invalidMessage([finding(3, 2)])).toBe('SKILL.md:3: mm (hh)');
  });
  test('names the directory when no file is to blame, and the number of the others', () => {
    expect(invalidMessage([{ code: 'c', path: '', message: 'm', hint: 'h' }, finding(1), finding(2)])).toBe(
      'the directory: m (h); 2 more in status.violations',
    );
  });
});

describe('clip', () => {
  test.each([
    ['abc', 3, 'abc'],
    ['abcd', 3, 'ab…'],
    ['a😀b', 3, 'a…'],
  ])('%s at %i is %s', (text, max, out) => expect(clip(text, max)).toBe(out));
});
