import { expect, test } from 'vitest';
import type { TestRepository } from '../../support/git.ts';
import { condition, type Ref } from '../../support/k8s.ts';
import { marketplace, requestPass, skillMd, waitNotReady, waitReady } from '../../support/market.ts';
import { eventsOf, messageOf, newMarket, skillsOf, useOperator, waitSkills } from './harness.ts';

const harness = useOperator();

/** Names `<prefix>-01` and on. */
const numbered = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}-${String(i + 1).padStart(2, '0')}`);

const skills = (names: string[]) => marketplace({ p: Object.fromEntries(names.map((name) => [name, {}])) });
const objectNames = (names: string[]) => names.map((name) => `p.${name}`);

/** A source of so many skills, all of them Ready. */
async function sourceOf(
  name: string,
  names: string[],
  spec: Record<string, unknown> = {},
): Promise<{ repository: TestRepository; source: Ref }> {
  const made = await newMarket(harness.operator, name, skills(names), spec);
  for (const skill of names) await waitReady(harness.operator.k8s, harness.operator.skill(`${name}.p.${skill}`));
  return made;
}

/** The annotation that the command in a message of PruneBlocked sets, and the object that it names. */
function commandIn(message: string): { ref: Ref; annotations: Record<string, string> } {
  const command = /kubectl -n (\S+) annotate marketplacesource (\S+) (\S+?)=(\S+) --overwrite$/.exec(message);
  if (!command) throw new Error(`there is no command at the end of: ${message}`);
  const [, namespace = '', name = '', key = '', value = ''] = command;
  return { ref: { ...harness.operator.source(name), namespace }, annotations: { [key]: value } };
}

test('a removed skill is deleted, its siblings are not touched', async () => {
  const { operator } = harness;
  const { repository, source } = await sourceOf('gone', ['gone-a', 'gone-b']);
  const before = await skillsOf(operator, 'gone');
  await repository.commit({}, { remove: ['plugins/p/skills/gone-a'] });
  await requestPass(operator.k8s, source);
  const after = await waitSkills(operator, 'gone', ['p.gone-b']);
  const versionOf = (of: typeof before) => of.get('p.gone-b')?.metadata.resourceVersion;
  expect(versionOf(after)).toBe(versionOf(before));
  await operator.k8s.waitFor(source, ({ status }) => status.skills?.total === 1);
});

test('policy Keep leaves vanished Skills controlled, counted and untouched until their directory returns', async () => {
  const { operator } = harness;
  const names = numbered('keep', 5);
  const { repository, source } = await sourceOf('keep', names, { prune: { policy: 'Keep' } });
  const before = await skillsOf(operator, 'keep');
  await repository.forcePush(skills(['keep-01']));
  const passed = await requestPass(operator.k8s, source);
  expect(condition(passed, 'PruneBlocked')).toBeUndefined();
  expect(condition(passed, 'Ready')?.message).toMatch(/5 skills applied$/);
  await operator.k8s.waitFor(source, ({ status }) => status.skills?.total === 5);
  const md = skillMd({ name: 'keep-02', body: 'Back.' });
  const commit = await repository.forcePush(marketplace({ p: { 'keep-02': md } }));
  await requestPass(operator.k8s, source);
  const back = await operator.k8s.waitFor(
    operator.skill('keep.p.keep-02'),
    ({ status }) => status.served?.commit === commit,
  );
  expect(back.metadata.uid).toBe(before.get('p.keep-02')?.metadata.uid);
  const after = await waitSkills(operator, 'keep', objectNames(names));
  for (const name of ['p.keep-01', 'p.keep-03', 'p.keep-04', 'p.keep-05'])
    expect(after.get(name)?.metadata.resourceVersion, name).toBe(before.get(name)?.metadata.resourceVersion);
});

test('more than maxPercent and more than three at once are blocked, while all other Skills go on', async () => {
  const { operator } = harness;
  const names = numbered('guard', 20);
  const { repository, source } = await sourceOf('guard', names);
  const left = names.slice(12);
  const md = skillMd({ name: 'guard-20', body: 'Changed.' });
  const commit = await repository.forcePush({
    ...skills([...left, 'guard-new']),
    ...marketplace({ p: { 'guard-20': md } }),
  });
  const blocked = await requestPass(operator.k8s, source);
  expect(messageOf(blocked, 'PruneBlocked')).toMatchInlineSnapshot(
    `"12 of 20 skills vanished at once in main@sha1:<commit>: plugins/p/skills/guard-01, plugins/p/skills/guard-02, plugins/p/skills/guard-03, plugins/p/skills/guard-04, plugins/p/skills/guard-05, plugins/p/skills/guard-06, plugins/p/skills/guard-07, plugins/p/skills/guard-08, plugins/p/skills/guard-09, plugins/p/skills/guard-10 and 2 more; none of them was deleted. If that is right, allow it: kubectl -n <namespace> annotate marketplacesource guard skills.tfrobot.io/allow-prune=<commit> --overwrite"`,
  );
  expect(condition(blocked, 'Ready')).toMatchObject({ status: 'True', reason: 'Succeeded' });
  expect(blocked.status.revision).toBe(`main@sha1:${commit}`);
  await operator.k8s.waitFor(operator.skill('guard.p.guard-20'), ({ status }) => status.served?.commit === commit);
  await waitReady(operator.k8s, operator.skill('guard.p.guard-new'));
  await waitReady(operator.k8s, operator.skill('guard.p.guard-01'));
  await waitSkills(operator, 'guard', objectNames([...names, 'guard-new']));
  await expect
    .poll(() => eventsOf(operator, source), { timeout: 20_000 })
    .toContain(`Warning PruneBlocked: ${condition(blocked, 'PruneBlocked')?.message}`);

  // Another revision's permission is none.
  await operator.k8s.annotate(source, { 'skills.tfrobot.io/allow-prune': 'e'.repeat(40) });
  const still = await requestPass(operator.k8s, source);
  expect(condition(still, 'PruneBlocked')?.message).toBe(condition(blocked, 'PruneBlocked')?.message);

  const { ref, annotations } = commandIn(condition(still, 'PruneBlocked')?.message ?? '');
  await operator.k8s.annotate(ref, annotations);
  await waitSkills(operator, 'guard', objectNames([...left, 'guard-new']));
  const free = await operator.k8s.waitFor(source, (object) => !condition(object, 'PruneBlocked'));
  expect(condition(free, 'Ready')?.message).toMatch(/: 9 skills applied$/);
});

test.each([
  ['exactly half', 8, 4, {}],
  ['three of four', 4, 3, {}],
  ['all of three', 3, 3, {}],
  ['all but one under maxPercent 100', 6, 5, { prune: { maxPercent: 100 } }],
])('%s is no case for the guard', async (_, count, vanish, spec) => {
  const { operator } = harness;
  const prefix = `free${count}${vanish}`;
  const names = numbered(prefix, count);
  const { repository, source } = await sourceOf(prefix, names, spec);
  await repository.forcePush({ 'README.md': 'x', ...skills(names.slice(vanish)) });
  const { status } = await requestPass(operator.k8s, source);
  expect(status.conditions.map(({ type }: { type: string }) => type)).not.toContain('PruneBlocked');
  await waitSkills(operator, prefix, objectNames(names.slice(vanish)));
});

test('an emptied repository is blocked like any other loss; what comes back ends the block', async () => {
  const { operator } = harness;
  const names = numbered('void', 4);
  const { repository, source } = await sourceOf('void', names);
  const before = await skillsOf(operator, 'void');
  await repository.forcePush({ 'README.md': 'nothing left' });
  const blocked = await requestPass(operator.k8s, source);
  expect(messageOf(blocked, 'PruneBlocked')).toMatch(/^4 of 4 skills vanished at once/);
  expect(blocked.status.problems).toMatchObject([{ reason: 'NoSkillsFound' }]);
  expect((await requestPass(operator.k8s, source)).status.conditions).toEqual(blocked.status.conditions);
  await repository.forcePush(skills(names));
  const back = await requestPass(operator.k8s, source);
  expect(condition(back, 'PruneBlocked')).toBeUndefined();
  const after = await waitSkills(operator, 'void', objectNames(names));
  for (const [name, skill] of after)
    expect(skill.metadata.resourceVersion, name).toBe(before.get(name)?.metadata.resourceVersion);
});

test('a deleted branch deletes nothing; its Skills stay Ready, and its return heals the source', async () => {
  const { operator } = harness;
  const names = numbered('cut', 5);
  const { repository, source } = await sourceOf('cut', names, { ref: { branch: 'main' } });
  const before = await skillsOf(operator, 'cut');
  const commit = await repository.resolve('refs/heads/main');
  await repository.branch('other', commit);
  await repository.deleteRef('refs/heads/main');
  await requestPass(operator.k8s, source);
  const lost = await waitNotReady(operator.k8s, source, 'RefNotFound');
  expect(lost.status.revision).toBe(`main@sha1:${commit}`);
  const after = await skillsOf(operator, 'cut');
  expect([...after].map(([name, { metadata }]) => [name, metadata.resourceVersion])).toEqual(
    [...before].map(([name, { metadata }]) => [name, metadata.resourceVersion]),
  );
  await repository.branch('main', commit);
  const healed = await requestPass(operator.k8s, source);
  expect(condition(healed, 'Ready')?.status).toBe('True');
});

test('a Skill that a person deletes comes back with the next pass', async () => {
  const { operator } = harness;
  const { source } = await sourceOf('again', ['again-a']);
  const before = await waitReady(operator.k8s, operator.skill('again.p.again-a'));
  await operator.k8s.delete(operator.skill('again.p.again-a'));
  await waitSkills(operator, 'again', []);
  await requestPass(operator.k8s, source);
  const after = await waitReady(operator.k8s, operator.skill('again.p.again-a'));
  expect(after.metadata.uid).not.toBe(before.metadata.uid);
  expect(after.status.served).toEqual(before.status.served);
});
