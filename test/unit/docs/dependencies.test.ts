import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { page, ROOT } from '../../support/markdown.ts';

const { text } = page('docs/dependencies.md');
const [, runtime = '', development = ''] = text.split(/^## .*$/m);

const rowsOf = (section: string) =>
  [...section.matchAll(/^\| `([^`]+)` \| (.*?) \| (.*?) \| (.*?) \|$/gm)].map(([, name = '', use, why, licence]) => ({
    name,
    use,
    why,
    licence,
  }));

describe('docs/dependencies.md', () => {
  test.each([
    ['at run time', runtime, manifest.dependencies],
    ['for development', development, manifest.devDependencies],
  ])('names the packages that package.json has %s, in order', (_, section, packages) => {
    expect(rowsOf(section).map(({ name }) => name)).toEqual(Object.keys(packages).sort());
  });

  test('says of each what it is for and why this one', () => {
    const rows = rowsOf(text);
    expect(rows.filter(({ use = '', why = '' }) => use.length < 10 || why.length < 10)).toEqual([]);
  });

  test('names the licence that each package declares', () => {
    const declared = rowsOf(text).map(({ name }) => {
      const file = join(ROOT, 'node_modules', name, 'package.json');
      return { name, licence: (JSON.parse(readFileSync(file, 'utf8')) as { license: string }).license };
    });
    expect(rowsOf(text).map(({ name, licence }) => ({ name, licence }))).toEqual(declared);
  });
});
