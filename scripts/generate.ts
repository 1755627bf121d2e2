/** Writes the generated files (crds/, docs/api.md, the reasons in docs/errors.md, parts of charts/ and argocd/); with --check only compares, and fails on a difference. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { stringify } from 'yaml';
import { customResourceDefinitions } from '../src/api/crd.ts';
import { REASONS } from '../src/base/reasons.ts';
import { chartFiles } from './lib/chart/files.ts';
import { apiReference } from './lib/docs/api.ts';
import { metricsPage } from './lib/docs/metrics.ts';

const ROOT = join(import.meta.dirname, '..');
const HEADER = '# Generated from src/api by `make generate`. Do not edit.\n';
const START = '<!-- reasons:start -->';
const END = '<!-- reasons:end -->';

/** Text of the two CRD files, by path. */
function crdFiles(): Map<string, string> {
  const files = new Map<string, string>();
  for (const [plural, crd] of Object.entries(customResourceDefinitions()))
    files.set(
      join(ROOT, 'crds', `${plural}.yaml`),
      HEADER + stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false }),
    );
  return files;
}

/** The fixes that people wrote, by reason. */
function fixesOf(table: string): Map<string, string> {
  const fixes = new Map<string, string>();
  for (const line of table.split('\n')) {
    const [, reason, fix] = /^\| `(\w+)` \|.*?\| (.*) \|$/.exec(line) ?? [];
    if (reason !== undefined) fixes.set(reason, (fix ?? '').trim());
  }
  return fixes;
}

/** docs/errors.md with one row per reason: what the catalogue says, and the fix as it stands. */
function withReasons(page: string): string {
  const from = page.indexOf(START);
  const to = page.indexOf(END);
  if (from < 0 || to < from) throw new Error(`docs/errors.md must hold ${START} and ${END}`);
  const fixes = fixesOf(page.slice(from, to));
  const rows = Object.entries(REASONS).map(
    ([reason, seen]) => `| \`${reason}\` | ${seen} | ${fixes.get(reason) ?? ''} |`,
  );
  const table = ['| Reason | What you see | What to do |', '| --- | --- | --- |', ...rows].join('\n');
  return `${page.slice(0, from)}${START}\n\n${table}\n\n${page.slice(to)}`;
}

/** The first line in which two texts differ, for a message. */
function firstDifference(is: string, wanted: string): string {
  const a = is.split('\n');
  const b = wanted.split('\n');
  const at = b.findIndex((line, i) => line !== a[i]);
  const line = at < 0 ? b.length : at;
  return `  line ${line + 1}\n  - ${a[line] ?? '(end of file)'}\n  + ${b[line] ?? '(end of file)'}`;
}

const check = process.argv.includes('--check');
const errorsPage = join(ROOT, 'docs', 'errors.md');
const crds = crdFiles();
const wanted = new Map([
  ...crds,
  [errorsPage, withReasons(await readFile(errorsPage, 'utf8'))],
  [join(ROOT, 'docs', 'api.md'), apiReference()],
  [join(ROOT, 'docs', 'guides', 'metrics.md'), metricsPage()],
  ...chartFiles(ROOT, new Map([...crds].map(([path, text]) => [basename(path), text]))),
]);
let differs = false;
for (const [path, text] of wanted) {
  const is = await readFile(path, 'utf8').catch(() => '');
  if (is === text) continue;
  const name = relative(ROOT, path);
  if (check) {
    differs = true;
    console.error(
      `${name} is not what the source gives; run "make generate" and commit it\n${firstDifference(is, text)}`,
    );
    continue;
  }
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  console.log(`wrote ${name}`);
}
process.exitCode = differs ? 1 : 0;
