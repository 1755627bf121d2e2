import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { summarise } from '../../../scripts/lib/summary.ts';
import { REASONS } from '../../../src/base/reasons.ts';
import { HEADER } from '../../bench/rows.ts';
import { anchor, commands, examples, headings, type Page, page, pages, prose, ROOT } from '../../support/markdown.ts';

const all = pages();
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const anchors = (text: string): string[] => headings({ text }).map(({ title }) => anchor(title));

/** What is wrong with a link, or undefined. */
function problemOf({ path }: Page, link: string): string | undefined {
  const [file = '', fragment] = link.split('#');
  const target = file === '' ? path : relative(ROOT, join(ROOT, dirname(path), file));
  if (!existsSync(join(ROOT, target))) return `${path}: ${link} leads nowhere`;
  if (fragment === undefined || statSync(join(ROOT, target)).isDirectory()) return undefined;
  return anchors(read(target)).includes(fragment) ? undefined : `${path}: ${link} names no heading`;
}

describe('the pages', () => {
  test('link only to what exists', () => {
    const links = all.flatMap((from) =>
      [...from.text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => ({ from, link })),
    );
    const local = links.filter(({ link }) => !/^[a-z]+:/.test(link));
    expect(local.length).toBeGreaterThan(20);
    expect(local.map(({ from, link }) => problemOf(from, link)).filter(Boolean)).toEqual([]);
  });

  test('have tables whose rows have as many cells as their head', () => {
    const crooked = all.flatMap((of) =>
      [...prose(of).matchAll(/(?:^ *\|.*\n?)+/gm)].flatMap(([table]) => {
        const rows = table.trimEnd().split('\n');
        // A bar splits cells inside of code, too, unless it is escaped.
        const cells = rows.map((row) => row.replaceAll('\\|', '').split('|').length);
        const ruled = /^ *\|(?: *:?-+:? *\|)+$/.test(rows[1] ?? '');
        return ruled && new Set(cells).size === 1 ? [] : [`${of.path}: ${rows[0]}`];
      }),
    );
    expect(crooked).toEqual([]);
  });

  test('name only make targets that exist', () => {
    const targets = new Set([...read('Makefile').matchAll(/^([a-z][a-z0-9-]*):/gm)].map(([, name]) => name));
    const named = all.flatMap((from) => [
      ...commands(from).flatMap((line) => [...line.matchAll(/^make ([a-z-]+)/g)].map(([, name]) => name)),
      ...[...from.text.matchAll(/`make ([a-z-]+)[^`]*`/g)].map(([, name]) => name),
    ]);
    expect(new Set(named).size).toBeGreaterThan(5);
    expect(named.filter((name) => !targets.has(name ?? ''))).toEqual([]);
  });

  test('name only scripts of package.json that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = all.flatMap(({ text }) => [...text.matchAll(/npm run (?:-s )?([a-z:-]+)/g)].map(([, name]) => name));
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((name) => !Object.hasOwn(scripts, name ?? ''))).toEqual([]);
  });

  test('say of every command that the README opens with what the reader will see', () => {
    const shown = examples(page('README.md'));
    expect(shown.map(({ command }) => command.split(' ').slice(0, 2).join(' '))).toEqual([
      'make demo',
      'make test',
      'make check',
      'make bench',
      'npm run',
    ]);
    expect(shown.filter(({ output }) => output.filter((line) => line !== '…').length === 0)).toEqual([]);
  });
});

describe('the README', () => {
  const outputOf = (command: string) =>
    examples(page('README.md')).find((one) => one.command === command)?.output ?? [];

  test('shows the checks that make check runs', () => {
    const names = [...read('scripts/check.ts').matchAll(/name: '([^']+)'/g)].map(([, name]) => name);
    const shown = outputOf('make check').flatMap((line) => /^ok {4}(.+?) {2,}/.exec(line)?.[1] ?? []);
    expect(shown.sort()).toEqual(names.sort());
    expect(outputOf('make check').at(-1)).toBe(`All ${names.length} checks passed.`);
  });

  test('shows the sum that make test ends with, without a number that would be wrong tomorrow', () => {
    const report = { numPassedTests: 7, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
    expect(outputOf('make test').at(-1)).toBe(summarise(report, 0).line.replace('7', 'N'));
  });

  test('shows rows that make bench prints, and none that misses its target', () => {
    const [head, ...rows] = outputOf('make bench').filter((line) => line !== '…');
    expect(head).toBe(HEADER);
    const sources = readdirSync(join(ROOT, 'test/bench'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => read(join('test/bench', file)))
      .join('\n');
    const measures = rows.map((row) => row.split('|')[1]?.trim() ?? '');
    expect(measures.length).toBeGreaterThan(4);
    expect(measures.filter((measure) => !sources.includes(`'${measure}'`))).toEqual([]);
    expect(rows.filter((row) => !row.endsWith('|   ok'))).toEqual([]);
  });
});

describe('the troubleshooting guide', () => {
  const { text } = page('docs/guides/troubleshooting.md');

  test('places every reason of the catalogue under what its reader sees', () => {
    const missing = Object.keys(REASONS).filter((reason) => !text.includes(`\`${reason}\``));
    expect(missing, 'add these to a table of docs/guides/troubleshooting.md').toEqual([]);
  });

  test('names no reason that does not exist', () => {
    const rows = [...text.matchAll(/^\|[^|]*\|([^|]*)\|[^|]*\|$/gm)].map(([, cell = '']) => cell);
    const named = rows.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name));
    expect(named.filter((name) => !Object.hasOwn(REASONS, name))).toEqual([]);
  });
});

describe('the list of decisions', () => {
  test('has every record once', () => {
    const records = all.map(({ path }) => /^docs\/adr\/(\d{4}-.*\.md)$/.exec(path)?.[1]).filter(Boolean);
    const listed = [...page('docs/adr/README.md').text.matchAll(/\]\((\d{4}-[^)]*)\)/g)].map(([, file]) => file);
    expect(listed).toEqual(records);
  });
});
