import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commands, fenced, headings, type Page, page, pages, ROOT, translations } from '../../support/markdown.ts';

describe('the index of the documentation', () => {
  test('leads to every page below docs/', () => {
    const linked = new Set([...page('docs/README.md').text.matchAll(/\]\(([^)#\s]+)\)/g)].map(([, link]) => link));
    const wanted = pages()
      .map(({ path }) => path)
      .filter((path) => path.startsWith('docs/') && path !== 'docs/README.md')
      .map((path) => path.slice('docs/'.length))
      // The records have an index of their own.
      .filter((path) => !/^adr\/\d/.test(path));
    expect(wanted.filter((path) => !linked.has(path))).toEqual([]);
  });
});

/** Code blocks with their language, without lines that only comment. */
const code = (of: Page): string[] => fenced(of).map((block) => block.replaceAll(/\s+# .*$/gm, ''));

describe.each(translations())('$path', (translation) => {
  const original = page(translation.path.replace('.zh-CN.md', '.md'));

  test('has the headings of the English page', () => {
    const levels = (of: Page) => headings(of).map(({ level }) => level);
    expect(levels(translation)).toEqual(levels(original));
  });
  test('shows the same code, and the same commands', () => {
    expect(code(translation)).toEqual(code(original));
    expect(commands(translation)).toEqual(commands(original));
  });
  test('has as many rows in its tables and entries in its lists', () => {
    const lines = ({ text }: Page) => [...text.matchAll(/^(\||- )/gm)].map(([start]) => start);
    expect(lines(translation)).toEqual(lines(original));
  });
  test('is in Chinese, and each page leads to the other', () => {
    const titles = headings(translation).filter(({ title }) => /\p{Script=Han}/u.test(title));
    expect(titles.length).toBeGreaterThan(headings(translation).length / 2);
    const name = (path: string) => path.slice(path.lastIndexOf('/') + 1);
    expect(translation.text).toContain(`](${name(original.path)})`);
    expect(original.text).toContain(`](${name(translation.path)})`);
  });
});

test('README and authoring guide are there in Chinese', () => {
  const paths = ['README.zh-CN.md', 'docs/guides/authoring-skills.zh-CN.md'];
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
