import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { GitMode, SkillTree, TreeFile } from '../../../src/protocol/types.ts';
import { validateSkill } from '../../../src/protocol/validate.ts';
import { file } from './support.ts';

/** Markdown of public marketplaces, where it lies next to the repository; never part of it. */
const CORPUS = new URL('../../../../shared/corpus/', import.meta.url);
const found = existsSync(CORPUS);
if (!found) process.stdout.write('corpus tests skipped: no folder ../shared/corpus next to the repository\n');

/** Number of skills, of valid ones, and of skills with unknown fields. */
const EXPECTED: [name: string, skills: number, valid: number, withUnknownFields: number][] = [
  ['auth0-agent-skills', 23, 23, 0],
  ['expo-skills', 25, 25, 22],
  ['grafana-ai-marketplace', 2, 2, 0],
  ['secondsky-claude-skills', 185, 185, 0],
  ['trailofbits-skills', 80, 80, 21],
  ['wshobson-agents', 181, 180, 14],
];

function readTrees(name: string): SkillTree[] {
  const files = new Map<string, TreeFile[]>();
  const lines = gunzipSync(readFileSync(new URL(`${name}.jsonl.gz`, CORPUS)))
    .toString()
    .trimEnd()
    .split('\n');
  for (const line of lines) {
    const { path, mode, text } = JSON.parse(line) as { path: string; mode: GitMode; text: string };
    const [, directory, rest] = /^(plugins\/[^/]+\/skills\/[^/]+)\/(.+)$/.exec(path) ?? [];
    if (!directory || !rest) continue;
    files.set(directory, [...(files.get(directory) ?? []), file(rest, text, mode)]);
  }
  return [...files]
    .filter(([, entries]) => entries.some(({ path }) => path === 'SKILL.md'))
    .map(([path, entries]) => ({ path, directory: path.slice(path.lastIndexOf('/') + 1), files: entries }));
}

describe.skipIf(!found)('public marketplaces', () => {
  it.each(EXPECTED)('%s: %i skills, %i valid', (name, skills, valid, withUnknownFields) => {
    const reports = readTrees(name).map((tree) => ({ tree, report: validateSkill(tree) }));
    const unknown = reports.filter(({ report }) => report.warnings.some(({ code }) => code === 'FieldUnknown'));
    expect([reports.length, reports.filter(({ report }) => report.valid).length, unknown.length]).toEqual([
      skills,
      valid,
      withUnknownFields,
    ]);
    const invalid = reports.filter(({ report }) => !report.valid);
    for (const { tree, report } of invalid) {
      expect([tree.path, report.violations.map(({ code }) => code)]).toEqual([
        'plugins/database-design/skills/postgresql',
        ['NameMismatchesDirectory'],
      ]);
    }
  });
});
