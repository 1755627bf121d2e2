import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { TestTree } from '../../support/git.ts';
import { condition } from '../../support/k8s.ts';
import { applySource, newRepository, waitReady } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';
import { ALONE, listSkills } from './support.ts';

/** Markdown of public marketplaces, where it lies next to the repository; never part of it. */
const CORPUS = new URL('../../../../shared/corpus/', import.meta.url);
const found = existsSync(CORPUS);
if (!found) process.stdout.write('corpus tests skipped: no folder ../shared/corpus next to the repository\n');

/** Skills and valid ones, as the README of the corpus counts them; the one with names that live in two plugins goes first. */
const EXPECTED: [name: string, skills: number, valid: number][] = [
  ['secondsky-claude-skills', 185, 185],
  ['auth0-agent-skills', 23, 23],
  ['expo-skills', 25, 25],
  ['grafana-ai-marketplace', 2, 2],
  ['trailofbits-skills', 80, 80],
  ['wshobson-agents', 181, 180],
];

function readTree(name: string): TestTree {
  const lines = gunzipSync(readFileSync(new URL(`${name}.jsonl.gz`, CORPUS)))
    .toString()
    .trimEnd()
    .split('\n');
  const files = lines.map((line) => JSON.parse(line) as { path: string; mode: '100644' | '100755'; text: string });
  return Object.fromEntries(files.map(({ path, mode, text }) => [path, { content: text, mode }]));
}

describe.skipIf(!found)('public marketplaces', () => {
  let operator: Operator;
  /** Bare names that are taken by now. */
  const taken = new Set<string>();
  beforeAll(async () => {
    operator = await startOperator(inject('cluster'), { args: ALONE });
  });
  afterAll(() => operator?.[Symbol.asyncDispose]());

  test.for(EXPECTED)('%s: %i skills, %i of them valid', { timeout: 120_000 }, async ([name, skills, valid]) => {
    const repository = await newRepository(operator, name);
    await repository.commit(readTree(name));
    const ref = await applySource(operator, name, repository);
    await waitReady(operator.k8s, ref);
    const all = await eventually(
      async () => {
        const now = await listSkills(operator, name);
        return now.length === skills && now.every((skill) => condition(skill, 'Validated')) && now;
      },
      { timeoutMs: 90_000, what: `${skills} skills with a verdict`, intervalMs: 250 },
    );
    const say = (type: string) => all.filter((skill) => condition(skill, type)?.status === 'True');
    const invalid = all.filter((skill) => condition(skill, 'Validated')?.status === 'False');
    expect([all.length, say('Validated').length]).toEqual([skills, valid]);
    expect(invalid.map(({ metadata, status }) => [metadata.name, status.violations[0].code])).toEqual(
      name === 'wshobson-agents' ? [['wshobson-agents.database-design.postgresql', 'NameMismatchesDirectory']] : [],
    );
    const held = say('NameConflict');
    const names = all.filter((skill) => !invalid.includes(skill)).map(({ status }) => status.skillName as string);
    const free = new Set(names.filter((bare) => !taken.has(bare)));
    expect(say('Ready')).toHaveLength(free.size);
    expect(held).toHaveLength(valid - free.size);
    if (name.startsWith('secondsky')) expect(held).toHaveLength(4);
    for (const bare of free) taken.add(bare);
  });
});
