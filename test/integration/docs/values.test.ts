import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { CHART, HELM_COMPILE_MS, Helm, MINIMAL, type Values } from '../../support/helm.ts';
import { blocks, originals, page, pages } from '../../support/markdown.ts';

const read = (name: string): unknown => parse(readFileSync(join(CHART, name), 'utf8'));
const VALUES = new Set(Object.keys(read('values.yaml') as object));
const SETTINGS = new Set(
  Object.keys(
    (read('values.schema.json') as { properties: { config: { properties: object } } }).properties.config.properties,
  ),
);
/** YAML that is neither an object nor values nor settings: files of CI systems, which publishing.test.ts reads. */
const ELSEWHERE = new Set(['docs/guides/publishing.md']);

/** Every YAML block without a kind. */
const shown = pages().flatMap(({ path, text }) =>
  blocks({ text }, 'yaml').flatMap((block) =>
    parseAllDocuments(block)
      .map((document) => document.toJSON() as Values)
      .filter((content) => content.kind === undefined)
      .map((content) => ({ path, content, keys: Object.keys(content).join(', ') })),
  ),
);
const within = (known: ReadonlySet<string>, content: Values) => Object.keys(content).every((key) => known.has(key));
const values = shown.flatMap((one) => {
  if (within(VALUES, one.content)) return [one];
  // A settings file stands below `config` in the chart, with the same schema.
  return within(SETTINGS, one.content) ? [{ ...one, content: { config: one.content } }] : [];
});

const isObject = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `over` laid over `base`, as Helm does with several files of values. */
const merged = (base: Values, over: Values): Values => {
  const result = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const below = result[key];
    result[key] = isObject(below) && isObject(value) ? merged(below, value) : value;
  }
  return result;
};

/** A page shortens digests. */
const spelledOut = (content: Values): Values =>
  JSON.parse(JSON.stringify(content).replaceAll('sha256:…', `sha256:${'a'.repeat(64)}`)) as Values;

const helm = new Helm();
beforeAll(() => helm.prepare(), HELM_COMPILE_MS);
afterAll(() => helm[Symbol.asyncDispose]());

test.each(values)('the chart takes $keys of $path', async ({ content }) => {
  await helm.ok(['template', 'skill-operator', CHART], { values: merged(MINIMAL, spelledOut(content)) });
});

/** `helm install` and `helm upgrade` of this chart, as the pages print them, on one line. */
const releases = originals().flatMap((of) =>
  blocks(of, 'sh')
    .flatMap((block) => block.replaceAll(/\\\n\s*/g, '').split('\n'))
    .filter((line) => /^helm (install|upgrade) \S+ charts\//.test(line))
    .map((line) => ({ path: of.path, line })),
);

/** values.yaml of a page is the one that the installation guide writes. */
const [GUIDE_VALUES = ''] = blocks(page('docs/guides/install.md'), 'yaml');

test.each(releases)('$path: "$line" can be rendered', async ({ line }) => {
  const [, , ...args] = line.trim().split(/\s+/);
  // The values of the page's own file, or of the release that is upgraded.
  const from = args.findIndex((word) => word === '--values' || word === '--reuse-values');
  const [kept] = from < 0 ? [] : args.splice(from, args[from] === '--values' ? 2 : 1);
  args.splice(1, 1, CHART);
  const values = kept === undefined ? {} : { values: parse(GUIDE_VALUES) as Values };
  await helm.ok(['template', ...args], values);
});

test('no YAML of a page is left unread', () => {
  const others = shown.filter(({ content }) => !within(VALUES, content) && !within(SETTINGS, content));
  expect(others.map(({ path }) => path).filter((path) => !ELSEWHERE.has(path))).toEqual([]);
  expect(values.length).toBeGreaterThan(3);
  expect(releases.length).toBeGreaterThan(4);
});
