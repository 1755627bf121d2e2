import { randomInt } from 'node:crypto';
import { describe, expect, inject, test } from 'vitest';
import { ANNOTATIONS } from '../../../src/api/labels.ts';
import { bookmark } from '../../support/audit.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestRepository } from '../../support/git.ts';
import { applySource, marketplace, newRepository, requestPass, waitReady } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';
import { listObjects } from '../../support/s3.ts';
import { ALONE, essence, listSkills, manySkills, ownWrites, waitCounts, waitQuiet } from './support.ts';

const info = inject('cluster');
const SIZE = 52;
const SLOW = { timeout: 120_000 };
const CRASHES = 3;

const firstCommit = (repository: TestRepository) => repository.commit(marketplace(manySkills('s', SIZE)));

/** Changes twenty skills, takes one away, adds one and moves one to another plugin. */
async function secondCommit(repository: TestRepository): Promise<void> {
  const all = manySkills('s', SIZE);
  const changed = Object.fromEntries(Object.entries(manySkills('s', SIZE, 1).p0 ?? {}).slice(0, 20));
  const { 's-50': moved = '', 's-51': _, ...rest } = all.p1 ?? {};
  const next = { p0: { ...all.p0, ...changed }, p1: rest, p2: { 's-50': moved, 's-new': {} } };
  await repository.commit(marketplace(next), { keep: false });
}

/** Kills the operator after a random number of its writes and starts it again, a few times. */
async function crashing(operator: Operator, writes: number): Promise<void> {
  for (let crash = 0; crash < CRASHES; crash++) {
    const mark = bookmark(info);
    const after = randomInt(0, Math.ceil(writes / CRASHES));
    await eventually(() => ownWrites(operator, mark).length >= after, {
      timeoutMs: 4_000,
      what: `${after} writes`,
      intervalMs: 2,
    }).catch(
      // It had less to do than that: then it is killed when idle.
      () => undefined,
    );
    await operator.kill();
    await operator.start();
  }
}

/** What the operator left behind, comparable between two namespaces and buckets. */
async function outcome(operator: Operator): Promise<unknown> {
  const skills = (await listSkills(operator)).sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const objects = await listObjects(info.s3, operator.bucket);
  const marketplaces = await operator.k8s.get(operator.source('team'));
  const text = JSON.stringify({
    skills: skills.map(essence),
    source: essence(marketplaces as never),
    objects: objects.map(({ key, size }) => [key.split('/packages/').at(-1), size]).sort(),
  });
  // Names and ids that are each run's own.
  return JSON.parse(text.replaceAll(operator.namespace, 'ns').replaceAll(/"inventory":"[0-9a-f]+"/g, '"inventory":""'));
}

test('killed at random points of a cold start and of a change, it ends where an undisturbed one does (I1)', {
  timeout: 300_000,
}, async () => {
  await using undisturbed = await startOperator(info, { args: ALONE });
  await using disturbed = await startOperator(info, { args: ALONE });
  const repository = await newRepository(undisturbed);
  const both = async (crash: Promise<void>): Promise<void> => {
    await crash;
    for (const operator of [undisturbed, disturbed]) {
      await waitCounts(operator, operator.source('team'), SIZE);
      // A last pass that sees everything, so that the pruning of what moved is no matter of luck.
      await requestPass(operator.k8s, operator.source('team'));
      await waitQuiet(operator);
    }
    expect(await outcome(disturbed)).toEqual(await outcome(undisturbed));
  };
  await firstCommit(repository);
  for (const operator of [undisturbed, disturbed]) await applySource(operator, 'team', repository);
  await both(crashing(disturbed, SIZE * 2));
  await secondCommit(repository);
  for (const operator of [undisturbed, disturbed]) {
    await operator.k8s.annotate(operator.source('team'), { [ANNOTATIONS.requestedAt]: 'second' });
  }
  await both(crashing(disturbed, 50));
});

describe('what is deleted during a pass does not come back by it (I3)', () => {
  test('Skills that are deleted while they are being evaluated', SLOW, async () => {
    await using operator = await startOperator(info, { args: ALONE });
    const repository = await newRepository(operator);
    await firstCommit(repository);
    const source = await applySource(operator, 'team', repository);
    await waitReady(operator.k8s, source);
    const doomed = (await listSkills(operator)).slice(-20).map(({ metadata }) => metadata.name);
    await Promise.all(doomed.map((name) => operator.k8s.delete(operator.skill(name))));
    await waitCounts(operator, source, SIZE - 20);
    await waitQuiet(operator);
    expect((await listSkills(operator)).filter(({ metadata }) => doomed.includes(metadata.name))).toEqual([]);
    await requestPass(operator.k8s, source);
    await waitCounts(operator, source, SIZE);
  });

  test('a source that is deleted while its Skills are being applied takes all of them along', SLOW, async () => {
    await using operator = await startOperator(info, { args: ALONE });
    const repository = await newRepository(operator);
    await firstCommit(repository);
    const source = await applySource(operator, 'team', repository);
    await eventually(async () => (await listSkills(operator)).length > 5, { what: 'the first Skills', intervalMs: 5 });
    await operator.k8s.delete(source);
    await operator.k8s.waitGone(source);
    await eventually(async () => (await listSkills(operator)).length === 0, { timeoutMs: 60_000, what: 'no Skill' });
    await waitQuiet(operator);
    expect(await listSkills(operator)).toEqual([]);
    await operator.check();
  });

  test('the fields have one manager each, and status is written by its own alone', SLOW, async () => {
    await using operator = await startOperator(info, { args: ALONE });
    const repository = await newRepository(operator);
    await repository.commit(marketplace({ docs: { pdf: {} } }));
    const source = await applySource(operator, 'team', repository);
    await waitCounts(operator, source, 1);
    const managers = async (ref: typeof source) =>
      ((await operator.k8s.get(ref))?.metadata.managedFields ?? [])
        .map(({ manager, operation, subresource }) => [manager, operation, subresource ?? ''].join(' ').trim())
        .sort();
    expect(await managers(operator.skill('team.docs.pdf'))).toEqual([
      'skill-operator-skill Apply status',
      'skill-operator-source Apply',
    ]);
    expect(await managers(source)).toEqual([
      'skill-operator-counts Apply status',
      'skill-operator-source Apply status',
      'test Apply',
    ]);
  });
});
