import { expect, test } from 'vitest';
import type { TestRepository } from '../../support/git.ts';
import { applySource, marketplace, newRepository, skillMd, waitNotReady, waitReady } from '../../support/market.ts';
import { messageOf, useOperator, waitSkills } from './harness.ts';

const harness = useOperator();

/** One commit per kind of ref, each with a skill that is named after it. */
async function repositoryWithRefs(): Promise<{ repository: TestRepository; commits: Record<string, string> }> {
  const repository = await newRepository(harness.operator);
  const commits: Record<string, string> = {};
  const add = async (name: string) => {
    commits[name] = await repository.forcePush(marketplace({ p: { [name]: {} } }), { branch: 'work' });
    return commits[name];
  };
  await repository.branch('dev', await add('of-branch'));
  await repository.branch('trunk', await add('of-head'));
  await repository.setHead('trunk');
  await repository.tag('stable', await add('of-tag'));
  await repository.tag('annotated', await add('of-annotated'), 'a release');
  await repository.tag('v1.2.0', await add('of-low'));
  await repository.tag('v1.10.0', await add('of-semver'), 'a release');
  await repository.tag('v2.0.0-rc.1', await add('of-candidate'));
  await repository.tag('release-9', await add('of-no-version'));
  const pull = await add('of-name');
  await repository.branch('pull-7', pull);
  await repository.branch('main', await add('of-main'));
  return { repository, commits };
}

test('every kind of ref leads to its commit, in the order commit, name, semver, tag, branch', async () => {
  const { operator } = harness;
  const { repository, commits } = await repositoryWithRefs();
  const cases: [string, Record<string, string>, string, string][] = [
    ['none', {}, 'of-head', 'trunk@sha1:'],
    ['branch', { branch: 'dev' }, 'of-branch', 'dev@sha1:'],
    ['tag', { tag: 'stable' }, 'of-tag', 'stable@sha1:'],
    ['annotated', { tag: 'annotated', branch: 'dev' }, 'of-annotated', 'annotated@sha1:'],
    ['semver', { semver: '^1.0.0', tag: 'stable' }, 'of-semver', 'v1.10.0@sha1:'],
    ['name', { name: 'refs/heads/pull-7', semver: '^1.0.0' }, 'of-name', 'refs/heads/pull-7@sha1:'],
    ['commit', { commit: commits['of-low'] ?? '', name: 'refs/heads/dev' }, 'of-low', 'sha1:'],
  ];
  for (const [name, ref, skill, revision] of cases) {
    const source = await applySource(operator, `ref-${name}`, repository, { ref });
    const { status } = await waitReady(operator.k8s, source);
    expect(status.revision, name).toBe(`${revision}${commits[skill]}`);
    await waitSkills(operator, `ref-${name}`, [`p.${skill}`]);
  }
});

test('a change of ref brings the skills of the new one and takes the others away', async () => {
  const { operator } = harness;
  const repository = await newRepository(operator);
  const stable = await repository.commit(marketplace({ p: { moved: {}, 'only-old': {} } }), { branch: 'stable' });
  const md = skillMd({ name: 'moved', body: 'Next.' });
  const next = await repository.commit(marketplace({ p: { moved: md, 'only-new': {} } }), { branch: 'next' });
  const source = await applySource(operator, 'switch', repository, { ref: { branch: 'stable' } });
  await waitReady(operator.k8s, source);
  await waitSkills(operator, 'switch', ['p.moved', 'p.only-old']);
  const before = await waitReady(operator.k8s, operator.skill('switch.p.moved'));
  expect(before.status.served.commit).toBe(stable);
  await operator.k8s.patch(source, { spec: { ref: { branch: 'next' } } });
  await waitSkills(operator, 'switch', ['p.moved', 'p.only-new']);
  const after = await operator.k8s.waitFor(
    operator.skill('switch.p.moved'),
    ({ status }) => status.served?.commit === next,
  );
  expect(after.metadata.uid).toBe(before.metadata.uid);
});

test.each([
  ['branch', { branch: 'nowhere' }],
  ['tag', { tag: 'v9' }],
  ['semver', { semver: '>=9' }],
  ['name', { name: 'refs/pull/1/head' }],
  ['commit', { commit: 'd'.repeat(40) }],
])('a %s that the remote lacks is RefNotFound, and the message says what to do', async (kind, ref) => {
  const { operator } = harness;
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ p: { [`lack-${kind}`]: {} } }));
  const source = await applySource(operator, `lack-${kind}`, repository, { ref });
  const waits = await waitNotReady(operator.k8s, source, 'RefNotFound');
  expect(messageOf(waits, 'Ready')).toMatch(
    new RegExp(`retry now: kubectl -n <namespace> annotate marketplacesource lack-${kind} .*requestedAt=`),
  );
  await waitSkills(operator, `lack-${kind}`, []);
});

test('an empty repository is EmptyRepository; the first push makes it Ready', async () => {
  const { operator } = harness;
  const repository = await newRepository(operator);
  const source = await applySource(operator, 'empty', repository, { interval: '10s' });
  await waitNotReady(operator.k8s, source, 'EmptyRepository');
  await repository.commit(marketplace({ p: { first: {} } }));
  await waitReady(operator.k8s, source, 40_000);
  await waitReady(operator.k8s, operator.skill('empty.p.first'));
});
