import { describe, expect, test } from 'vitest';
import { clip } from '../../../src/lifecycle/condition.ts';
import { fitFindings, fitStatus, invalidMessage } from '../../../src/lifecycle/findings.ts';
import { summarizeSkill } from '../../../src/lifecycle/skill-summary.ts';
import { deleting, own } from './helpers.ts';

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
  test('stays below 4 KiB, whatever the texts are', () => {
    const fitted = fitFindings(many(30, 9000));
    expect(fitted.length).toBeGreaterThan(2);
    expect(Buffer.byteLength(JSON.stringify(fitted))).toBeLessThan(4 * 1024 + 100);
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

test('a status stays below 16 KiB: hostile content, ten retired versions, the longest description', () => {
  const hostile = Array.from({ length: 500 }, () => ({
    code: 'c',
    path: 'p'.repeat(512),
    message: 'm'.repeat(9000),
    hint: 'h'.repeat(9000),
  }));
  const image = `registry.example.com/${'r'.repeat(150)}@sha256:${'0'.repeat(64)}`;
  const retired = Array.from({ length: 10 }, (_, i) =>
    deleting(own(`${i}`.repeat(64), { image, templateID: 't'.repeat(60) })),
  );
  const slots = { served: own('0'.repeat(64), { image }), retired };
  const base = { generation: 1, now: '2026-01-01T00:00:00Z', suspended: false, ownGit: true, passed: {} };
  const summary = summarizeSkill({ ...base, slots, outcome: { kind: 'Done' }, invalid: invalidMessage(hostile) });
  const findings = { violations: fitFindings(hostile), warnings: fitFindings(hostile) };
  const candidate = {
    ...slots.served,
    phase: 'Failed' as const,
    message: 'm'.repeat(300),
    logTail: `start${'l'.repeat(4000)}end`,
  };
  const status = { ...summary, ...slots, ...findings, candidate, description: '日'.repeat(1024) };
  const fitted = fitStatus(status);
  expect(Buffer.byteLength(JSON.stringify(status))).toBeGreaterThan(16 * 1024);
  expect(Buffer.byteLength(JSON.stringify(fitted))).toBeLessThanOrEqual(16 * 1024);
  expect(fitted.violations).toEqual(findings.violations.slice(0, 1));
  expect(fitted.candidate?.logTail).toBe('');
  expect(fitted.description).toMatch(/^日+…$/);
  expect(fitted.retired).toEqual(retired);
  const { candidate: _candidate, ...rest } = { ...status, retired: [] };
  expect(fitStatus(rest)).toBe(rest);
  expect(fitStatus({ ...status, retired: retired.slice(0, 7) }).candidate?.logTail).toMatch(/^l+end$/);
});
