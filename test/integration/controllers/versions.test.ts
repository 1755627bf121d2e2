import { expect, test } from 'vitest';
import { DOCKERFILES } from '../../../src/protocol/names.ts';
import { condition, type K8sObject, type Ref } from '../../support/k8s.ts';
import { marketplace, requestPass, skillMd, waitNotReady, waitReady } from '../../support/market.ts';
import { messageOf, newMarket, skillsOf, useOperator } from './harness.ts';

const harness = useOperator();

const puts = async () =>
  (await harness.operator.metrics()).value('skill_operator_store_requests_total', { operation: 'put' });

/** Looks at the Skill until `done`; every look must satisfy `always`. */
async function watchUntil(
  ref: Ref,
  done: (o: K8sObject) => boolean,
  always: (o: K8sObject) => void,
): Promise<K8sObject> {
  return await harness.operator.k8s.waitFor(ref, (object) => {
    always(object);
    return done(object);
  });
}

/** Waits until the Skill serves another version than this one, and is Ready. */
const waitMoved = async (ref: Ref, from: string): Promise<K8sObject> =>
  await harness.operator.k8s.waitFor(
    ref,
    (object) => object.status.served?.digest !== from && condition(object, 'Ready')?.status === 'True',
  );

test('one changed skill of many moves that Skill alone, which stays served meanwhile', async () => {
  const { operator } = harness;
  const skills = { 'one-a': {}, 'one-b': {}, 'one-c': {}, 'one-d': {} };
  const { repository, source, commit } = await newMarket(operator, 'one', marketplace({ p: skills }));
  for (const name of Object.keys(skills)) await waitReady(operator.k8s, operator.skill(`one.p.${name}`));
  const before = await skillsOf(operator, 'one');
  const old = before.get('p.one-b')?.status.served;
  const next = await repository.commit(marketplace({ p: { 'one-b': skillMd({ name: 'one-b', body: 'New.' }) } }));
  await operator.k8s.annotate(source, { 'skills.tfrobot.io/requestedAt': 'now' });
  const gaps: unknown[] = [];
  const moved = await watchUntil(
    operator.skill('one.p.one-b'),
    (object) => object.status.served?.commit === next && condition(object, 'Ready')?.status === 'True',
    (object) => {
      if (!object.status.served || condition(object, 'Serving')?.status !== 'True') gaps.push(object.status);
    },
  );
  expect(gaps).toEqual([]);
  expect(moved.spec.revision.commit).toBe(next);
  expect(moved.status.retired).toEqual([{ ...old, state: 'Kept' }]);
  expect(moved.status.observedGeneration).toBe(2);
  const after = await skillsOf(operator, 'one');
  for (const name of ['p.one-a', 'p.one-c', 'p.one-d']) {
    expect(after.get(name)?.metadata.resourceVersion, name).toBe(before.get(name)?.metadata.resourceVersion);
    expect(after.get(name)?.spec.revision.commit).toBe(commit);
  }
  expect((await waitReady(operator.k8s, source)).status.revision).toBe(`main@sha1:${next}`);
});

test('a commit that touches no skill moves the source alone', async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'readme', marketplace({ p: { 'readme-a': {} } }));
  const before = await waitReady(operator.k8s, operator.skill('readme.p.readme-a'));
  const next = await repository.commit({ 'README.md': 'Hello', 'plugins/p/README.md': 'Hello' });
  const { status } = await requestPass(operator.k8s, source);
  expect(status.revision).toBe(`main@sha1:${next}`);
  const after = await waitReady(operator.k8s, operator.skill('readme.p.readme-a'));
  expect(after.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
});

test('content that breaks leaves the old version served and names file, line and fix; the repair is Ready', async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'broken', marketplace({ p: { brk: {} } }));
  const ref = operator.skill('broken.p.brk');
  const good = await waitReady(operator.k8s, ref);
  await repository.commit(marketplace({ p: { brk: '---\nname: brk\ndescription: a: b\nruntime: bash\n---\nText\n' } }));
  await requestPass(operator.k8s, source);
  const bad = await waitNotReady(operator.k8s, ref, 'Invalid');
  expect(messageOf(bad, 'Ready')).toMatchInlineSnapshot(
    `"SKILL.md:3:14: the value contains a colon that YAML reads as another key (quote the value: description: "a: b"); version <version> stays served"`,
  );
  expect(condition(bad, 'Stalled')?.reason).toBe('Invalid');
  expect(condition(bad, 'Serving')?.status).toBe('True');
  expect(condition(bad, 'Validated')).toMatchObject({ status: 'False', reason: 'Invalid' });
  expect(bad.status.served).toEqual(good.status.served);
  expect(bad.status.description).toBe(good.status.description);
  expect(bad.status.observedGeneration).toBe(bad.metadata.generation);
  expect(bad.status.violations[0]).toMatchObject({ path: 'SKILL.md', line: 3 });
  expect(bad.status.violationCount).toBe(bad.status.violations.length);

  const fixed = skillMd({ name: 'brk', description: 'Repaired.' });
  await repository.commit(marketplace({ p: { brk: fixed } }));
  await requestPass(operator.k8s, source);
  const repaired = await waitMoved(ref, good.status.served.digest);
  expect(repaired.status.description).toBe('Repaired.');
  expect([repaired.status.violations, repaired.status.violationCount]).toEqual([undefined, undefined]);
  expect(condition(repaired, 'Stalled')).toBeUndefined();
});

test('taking the broken commit back is Ready again with the served digest, without a PUT', async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'revert', marketplace({ p: { rev: {} } }));
  const ref = operator.skill('revert.p.rev');
  const good = await waitReady(operator.k8s, ref);
  await repository.commit(marketplace({ p: { rev: 'no frontmatter\n' } }));
  await requestPass(operator.k8s, source);
  await waitNotReady(operator.k8s, ref, 'Invalid');
  const before = await puts();
  await repository.commit(marketplace({ p: { rev: {} } }));
  await requestPass(operator.k8s, source);
  const again = await waitReady(operator.k8s, ref);
  expect(again.status.served).toEqual(good.status.served);
  expect(again.status.retired).toBeUndefined();
  expect(await puts()).toBe(before);
});

test('a digest that returns swaps with the served one in one write, without a PUT', async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'swap', marketplace({ p: { swp: {} } }));
  const ref = operator.skill('swap.p.swp');
  const first = (await waitReady(operator.k8s, ref)).status.served;
  await repository.commit(marketplace({ p: { swp: skillMd({ name: 'swp', body: 'Second.' }) } }));
  await requestPass(operator.k8s, source);
  const second = (await waitMoved(ref, first.digest)).status.served;
  const before = await puts();
  const third = await repository.commit(marketplace({ p: { swp: {} } }));
  await requestPass(operator.k8s, source);
  const { status } = await waitMoved(ref, second.digest);
  expect(status.served).toEqual({ ...first, commit: third });
  expect(status.retired).toEqual([{ ...second, state: 'Kept' }]);
  expect(await puts()).toBe(before);
});

test('versionHistoryLimit bounds what is kept, and a lower one trims at once', async () => {
  const { operator } = harness;
  const spec = { skillTemplate: { versionHistoryLimit: 2 } };
  const { repository, source } = await newMarket(operator, 'limit', marketplace({ p: { lim: {} } }), spec);
  const ref = operator.skill('limit.p.lim');
  const digests = [(await waitReady(operator.k8s, ref)).status.served.digest];
  for (const body of ['2', '3', '4']) {
    await repository.commit(marketplace({ p: { lim: skillMd({ name: 'lim', body }) } }));
    await requestPass(operator.k8s, source);
    digests.unshift((await waitMoved(ref, digests[0])).status.served.digest);
  }
  const kept = async (n: number) =>
    await operator.k8s.waitFor(ref, ({ status }) => (status.retired ?? []).length === n);
  const two = await kept(2);
  expect(two.status.retired.map(({ digest }: { digest: string }) => digest)).toEqual(digests.slice(1, 3));
  for (const limit of [1, 0]) {
    await operator.k8s.patch(source, { spec: { skillTemplate: { versionHistoryLimit: limit } } });
    const trimmed = await kept(limit);
    expect(trimmed.spec.versionHistoryLimit).toBe(limit);
    expect(trimmed.status.served.digest).toBe(digests[0]);
  }
});

test('a change of runtime is a new version: template ids, tier and card follow what is served', async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'runtime', marketplace({ p: { rt: {} } }));
  const ref = operator.skill('runtime.p.rt');
  const first = (await waitReady(operator.k8s, ref)).status.served;
  await repository.commit(marketplace({ p: { rt: skillMd({ name: 'rt', runtime: 'e2b::node' }) } }));
  await requestPass(operator.k8s, source);
  const second = await waitMoved(ref, first.digest);
  expect(second.status).toMatchObject({ runtime: 'e2b::node', tier: 1, templateIDs: { e2b: 'e2b-node' } });

  const own = { 'SKILL.md': skillMd({ name: 'rt', runtime: 'e2b' }), [DOCKERFILES.e2b]: 'FROM x\n' };
  await repository.commit(marketplace({ p: { rt: own } }));
  await requestPass(operator.k8s, source);
  const waits = await waitNotReady(operator.k8s, ref, 'BuildNotConfigured');
  // The card and the template ids are those of the version that is served until the new one is wholly ready.
  expect(waits.status).toMatchObject({ runtime: 'e2b::node', tier: 1, templateIDs: { e2b: 'e2b-node' } });
  expect(waits.status.served).toEqual(second.status.served);
  expect(waits.status.candidate).toMatchObject({ runtime: 'e2b', phase: 'Queued' });
  expect(messageOf(waits, 'Ready')).toMatch(/; version <version> stays served$/);

  await repository.commit(marketplace({ p: { rt: {} } }), { remove: [`plugins/p/skills/rt/${DOCKERFILES.e2b}`] });
  await requestPass(operator.k8s, source);
  const { status } = await waitMoved(ref, second.status.served.digest);
  expect(status).toMatchObject({ runtime: 'prompt-only', tier: 0 });
  expect([status.templateIDs, status.candidate]).toEqual([undefined, undefined]);
});

test('a change of mode alone is a new version', async () => {
  const { operator } = harness;
  const path = 'scripts/run.sh';
  const { repository, source } = await newMarket(operator, 'mode', marketplace({ p: { md: { [path]: 'echo\n' } } }));
  const ref = operator.skill('mode.p.md');
  const first = (await waitReady(operator.k8s, ref)).status.served;
  await repository.commit(marketplace({ p: { md: { [path]: { content: 'echo\n', mode: '100755' } } } }));
  await requestPass(operator.k8s, source);
  expect((await waitMoved(ref, first.digest)).status.served.bytes).toBe(first.bytes);
});
