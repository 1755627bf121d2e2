import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the repository. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** A page of the documentation. */
export interface Page {
  /** Relative to the root of the repository. */
  path: string;
  text: string;
}

/** Folders whose Markdown is documentation; of the others only a README is. */
const FOLDERS = ['docs', 'charts', 'examples', 'images'];

const isPage = (folder: string, name: string): boolean =>
  folder === 'docs' ? name.endsWith('.md') : /^README(\.[\w-]+)?\.md$/.test(name);

/** What the project tells its readers: the pages at the root, everything below docs/, and the README of every other folder; by path. */
export function pages(): Page[] {
  const atRoot = readdirSync(ROOT).filter((name) => name.endsWith('.md'));
  const below = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && isPage(folder, entry.name))
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name))),
  );
  return [...atRoot, ...below].sort().map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
}

const isTranslation = ({ path }: Page): boolean => path.endsWith('.zh-CN.md');

/** The pages that are a translation of another. */
export const translations = (): Page[] => pages().filter(isTranslation);

/** The other pages; a translation shows the same blocks, which a test of its own compares. */
export const originals = (): Page[] => pages().filter((one) => !isTranslation(one));

/** One page by its path. */
export const page = (path: string): Page => ({ path, text: readFileSync(join(ROOT, path), 'utf8') });

const FENCED = /^ *```[\s\S]*?^ *```$/gm;

/** The fenced code blocks of a page as they stand there. */
export const fenced = ({ text }: Pick<Page, 'text'>): string[] => [...text.matchAll(FENCED)].map(([block]) => block);

/** The text of a page without them. */
export const prose = ({ text }: Pick<Page, 'text'>): string => text.replaceAll(FENCED, '');

/** Content of the fenced code blocks of that language, without their indent. */
export function blocks({ text }: Pick<Page, 'text'>, language: string): string[] {
  return [...text.matchAll(/^( *)```(\w*)\n([\s\S]*?)^\1```$/gm)]
    .filter(([, , found]) => found === language)
    .map(([, indent = '', , content = '']) => content.replaceAll(new RegExp(`^${indent}`, 'gm'), ''));
}

/** A command of a `console` block and the lines that the page shows below it. */
export interface Example {
  page: string;
  command: string;
  output: string[];
}

/** The commands of a page's `console` blocks. */
export function examples(of: Page): Example[] {
  return blocks(of, 'console').flatMap((block) => {
    const found: Example[] = [];
    for (const line of block.trimEnd().split('\n')) {
      if (line.startsWith('$ ')) found.push({ page: of.path, command: line.slice(2), output: [] });
      else found.at(-1)?.output.push(line);
    }
    return found;
  });
}

/** Every command line that a page tells its reader to type, in `sh` and `console` blocks; comments are left out. */
export function commands(of: Page): string[] {
  const typed = blocks(of, 'sh').flatMap((block) => block.split('\n'));
  return [...typed, ...examples(of).map(({ command }) => command)]
    .map((line) => line.replace(/\s+#.*$/, '').trim())
    .filter((line) => line !== '');
}

/** The headings of a page with their levels, code blocks left out. */
export const headings = (of: Pick<Page, 'text'>): { level: number; title: string }[] =>
  [...prose(of).matchAll(/^(#+) (.*)$/gm)].map(([, marks = '', title = '']) => ({
    level: marks.length,
    title,
  }));

/** The id that GitHub gives a heading. */
export const anchor = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[`*_]/g, '')
    .replaceAll(/[^\p{L}\p{N}\s-]/gu, '')
    .replaceAll(/\s/g, '-');
