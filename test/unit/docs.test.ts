import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { REASONS } from '../../src/base/reasons.ts';

const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
const table = page.slice(page.indexOf('<!-- reasons:start -->'), page.indexOf('<!-- reasons:end -->'));
const rows = [...table.matchAll(/^\| `(\w+)` \| (.*?) \| (.*) \|$/gm)].map(([, reason, seen, fix]) => ({
  reason,
  seen,
  fix,
}));

describe('docs/errors.md', () => {
  test('has a row for every reason, in the order of the catalogue, and for nothing else', () => {
    expect(rows.map((row) => row.reason)).toEqual(Object.keys(REASONS));
  });
  test('says of every reason what the catalogue says', () => {
    expect(Object.fromEntries(rows.map((row) => [row.reason, row.seen]))).toEqual(REASONS);
  });
  test('says of every reason what to do', () => {
    expect(rows.filter((row) => !row.fix?.trim()).map((row) => row.reason)).toEqual([]);
  });
});
