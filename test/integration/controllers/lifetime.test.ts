import { expect, inject, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { eventually } from '../../support/eventually.ts';
import {
  applySource,
  gitSource,
  marketplace,
  newRepository,
  publicUrl,
  waitNotReady,
  waitReady,
} from '../../support/market.ts';
import { startOperator } from '../../support/operator.ts';
import { listObjects } from '../../support/s3.ts';
import { newMarket, skillsOf, useOperator, waitSkills } from './harness.ts';

const harness = useOperator();

test('deleting a source removes its Skills; their packages stay in the bucket for the sweep', async () => {
  const { operator } = harness;
  const { source } = await newMarket(operator, 'ends', marketplace({ p: { 'end-a': {}, 'end-b': {} } }));
  const { status } = await waitReady(operator.k8s, operator.skill('ends.p.end-a'));
  await operator.k8s.delete(source);
  await operator.k8s.waitGone(source);
  await eventually(async () => (await skillsOf(operator, 'ends')).size === 0, {
    timeoutMs: 60_000,
    what: 'the end of its Skills',
  });
  const keys = (await listObjects(operator.info.s3, operator.bucket)).map(({ key }) => key);
  expect(keys.filter((key) => key.includes(status.served.digest))).toHaveLength(2);
});

test('a source that is deleted and made again gets Skills of its own', async () => {
  const { operator } = harness;
  const { source, repository } = await newMarket(operator, 'twice', marketplace({ p: { reborn: {} } }));
  const ref = operator.skill('twice.p.reborn');
  const first = await waitReady(operator.k8s, ref);
  await operator.k8s.delete(source);
  await operator.k8s.waitGone(source);
  await operator.k8s.apply(gitSource(operator, 'twice', repository, { interval: '10s' }));
  const second = await operator.k8s.waitFor(
    ref,
    ({ metadata, status }) => metadata.uid !== first.metadata.uid && status.served !== undefined,
    { timeoutMs: 60_000 },
  );
  const owner = await operator.k8s.waitFor(source, () => true);
  expect(second.metadata.ownerReferences).toMatchObject([{ uid: owner.metadata.uid }]);
  expect(second.status.served.digest).toBe(first.status.served.digest);
});

test('a suspended or failing source is deleted like any other', async () => {
  const { operator } = harness;
  const { source } = await newMarket(operator, 'paused', marketplace({ p: { 'paused-a': {} } }));
  await operator.k8s.patch(source, { spec: { suspend: true } });
  const lost = await applySource(operator, 'lost', { name: 'no-such-repository' });
  await waitNotReady(operator.k8s, lost, 'RepositoryNotFound');
  for (const ref of [source, lost]) {
    await operator.k8s.delete(ref);
    await operator.k8s.waitGone(ref);
  }
  await waitSkills(operator, 'paused', []);
});

test('deleting a namespace with everything in it ends, and the operator goes on', async () => {
  await using operator = await startOperator(inject('cluster'));
  const { k8s, namespace } = operator;
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ p: { last: {}, bad: 'no frontmatter' } }));
  await waitReady(k8s, await applySource(operator, 'whole', repository));
  await waitReady(k8s, operator.skill('whole.p.last'));
  await k8s.apply({
    apiVersion: API_VERSION,
    kind: 'Skill',
    metadata: { name: 'own', namespace },
    spec: {
      source: { git: { url: publicUrl(operator, repository) } },
      plugin: 'p',
      path: 'plugins/p/skills/last',
    },
  });
  await waitNotReady(k8s, operator.skill('whole.p.bad'), 'Invalid');
  await waitNotReady(k8s, operator.skill('own'), 'NameConflict');
  await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
  await k8s.waitGone({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
  await operator.check();
  expect((await operator.metrics()).value('controller_runtime_reconcile_total', { result: 'panic' })).toBe(0);
});

test('two operators that watch a namespace each work side by side', async () => {
  await using other = await startOperator(inject('cluster'));
  const repository = await newRepository(other);
  await repository.commit(marketplace({ p: { common: {} } }));
  const served = [];
  for (const operator of [other, harness.operator]) {
    await waitReady(operator.k8s, await applySource(operator, 'same', repository));
    served.push((await waitReady(operator.k8s, operator.skill('same.p.common'))).status.served);
  }
  expect(served[0]).toEqual(served[1]);
});
