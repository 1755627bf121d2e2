import { renameSync } from 'node:fs';
import { describe, expect, inject, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { TestRepository } from '../../support/git.ts';
import { condition, type Ref } from '../../support/k8s.ts';
import {
  applySource,
  gitSource,
  marketplace,
  newRepository,
  requestPass,
  waitNotReady,
  waitReady,
} from '../../support/market.ts';
import { GitWorld, ORIGIN, unique } from './git-world.ts';
import { listSkills } from './support.ts';

const { git } = inject('cluster');
const world = new GitWorld();

describe('skills that are served stay, whatever happens to their repository (I13, I14)', () => {
  test.for<[string, (own: TestRepository, ref: Ref) => Promise<unknown> | unknown, string]>([
    ['the branch is deleted', (own) => own.deleteRef('refs/heads/main'), 'RefNotFound'],
    ['the repository is gone', (own) => renameSync(own.path, `${own.path}.moved`), 'RepositoryNotFound'],
    [
      'access is revoked',
      (own, ref) => world.operator.k8s.patch(ref, { spec: { git: { url: `${git.privateUrl}/${own.name}.git` } } }),
      'AuthenticationFailed',
    ],
    [
      'the server is down',
      (_, ref) => world.operator.k8s.patch(ref, { spec: { git: { url: 'http://127.0.0.1:9/x.git' } } }),
      'GitUnreachable',
    ],
    [
      'the server is silent',
      (_, ref) => world.operator.k8s.patch(ref, { spec: { git: { url: `${ORIGIN}/silent/x.git` }, timeout: '1s' } }),
      'GitTimeout',
    ],
  ])('%s', async ([, breakIt, reason]) => {
    const own = await newRepository(world.operator, 'kept');
    const bare = unique('kept');
    const names = Array.from({ length: 5 }, (_, i) => `${bare}-${i}`);
    await own.commit(marketplace({ docs: Object.fromEntries(names.map((name) => [name, {}])) }));
    const ref = await applySource(world.operator, bare, own, { ref: { branch: 'main' } });
    for (const name of names) await waitReady(world.operator.k8s, world.operator.skill(`${bare}.docs.${name}`));
    const before = await listSkills(world.operator, bare);
    await breakIt(own, ref);
    await requestPass(world.operator.k8s, ref);
    const object = await waitNotReady(world.operator.k8s, ref, reason);
    expect(condition(object, 'Fetched')).toMatchObject({ status: 'False', reason });
    expect(object.status?.revision).toMatch(/^main@sha1:/);
    expect(await listSkills(world.operator, bare)).toEqual(before);
    await world.operator.k8s.delete(ref);
  });

  test('a source without skills says so and deletes none that many vanished', async () => {
    const own = await newRepository(world.operator, 'emptied');
    const bare = unique('emptied');
    await own.commit(
      marketplace({ docs: Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`${bare}-${i}`, {}])) }),
    );
    const ref = await applySource(world.operator, bare, own);
    await eventually(async () => (await listSkills(world.operator, bare)).length === 5, { what: 'five Skills' });
    await waitReady(world.operator.k8s, ref);
    await own.forcePush({ 'README.md': 'nothing left' });
    await requestPass(world.operator.k8s, ref);
    const object = await world.operator.k8s.waitCondition(ref, 'PruneBlocked');
    expect(object.status?.problems).toMatchObject([{ reason: 'NoSkillsFound' }]);
    expect(await listSkills(world.operator, bare)).toHaveLength(5);
  });
});

test('sources whose server is silent do not hold up the others', async () => {
  const hanging = await Promise.all(
    Array.from({ length: 3 }, () => world.applied({ git: { url: `${ORIGIN}/silent/x.git` }, timeout: '60s' })),
  );
  const started = performance.now();
  const own = await newRepository(world.operator, 'sibling');
  const bare = unique('sibling');
  await own.commit(marketplace({ docs: { [bare]: {} } }));
  await world.operator.k8s.apply(gitSource(world.operator, bare, own));
  await waitReady(world.operator.k8s, world.operator.skill(`${bare}.docs.${bare}`), 60_000);
  const took = performance.now() - started;
  await Promise.all(hanging.map((ref) => world.operator.k8s.delete(ref)));
  expect(took).toBeLessThan(20_000);
});
