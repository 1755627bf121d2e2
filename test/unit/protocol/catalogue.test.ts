import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { VIOLATIONS } from '../../../src/protocol/violations.ts';

const DOCS = new URL('../../../docs/errors.md', import.meta.url);

/** The rows of the table between the violation markers: code → the other cells. */
function documented(): Map<string, string[]> {
  const text = readFileSync(DOCS, 'utf8');
  const [, section = ''] = /<!-- violations:start -->(.*?)<!-- violations:end -->/s.exec(text) ?? [];
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  return new Map(
    rows
      .map((row) =>
        row
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim()),
      )
      .map(([code = '', ...rest]) => [code.replaceAll('`', ''), rest]),
  );
}

describe('the catalogue of violations', () => {
  it('is documented code by code in docs/errors.md, with the same words', () => {
    const expected = Object.entries(VIOLATIONS).map(([code, { severity, summary, fix }]) => [
      code,
      [severity, summary, fix],
    ]);
    expect([...documented()]).toEqual(expected);
  });

  it.each(Object.entries(VIOLATIONS))('%s reads well', (code, { summary, fix }) => {
    expect(code).toMatch(/^(?:[A-Z][a-z0-9]+)+$/);
    for (const sentence of [summary, fix]) expect(sentence).toMatch(/^[A-Z.`].*\.$/);
    expect(summary + fix).not.toContain('|');
  });
});
