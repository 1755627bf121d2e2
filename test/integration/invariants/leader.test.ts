import { expect, inject, test } from 'vitest';
import { bookmark } from '../../support/audit.ts';
import { eventually } from '../../support/eventually.ts';
import { applySource, marketplace, newRepository, requestPass, waitReady } from '../../support/market.ts';
import { startOperator } from '../../support/operator.ts';
import { createOperatorAccount, installCrds } from '../../support/operator-account.ts';
import { startApiProxy } from './api-proxy.ts';
import { changeSkill, listSkills, manySkills, ownWrites, waitCounts, waitQuiet } from './support.ts';

const info = inject('cluster');
/** Renewal ends 10 s after the last success, the lease itself after 15 s; then the other has to see it. */
const TAKEOVER_MS = 40_000;

/** Resolves with what the operator says when it ends by itself. */
const ended = (operator: { check(): Promise<void> }) =>
  eventually(
    () =>
      operator.check().then(
        () => false as const,
        (error: Error) => error.message,
      ),
    {
      timeoutMs: TAKEOVER_MS,
      what: 'the end of the operator',
      intervalMs: 100,
    },
  );

test('a leader that slept through its lease ends without a word, and the other one has taken over (I11)', {
  timeout: 180_000,
}, async () => {
  const first = await startOperator(info);
  const { account, namespace, bucket } = first;
  await using second = await startOperator(info, { account, namespace, bucket, until: 'started' });
  const repository = await newRepository(first);
  await repository.commit(marketplace(manySkills('s', 150)));
  const source = await applySource(second, 'team', repository);
  await eventually(async () => (await listSkills(second)).length > 10, { what: 'the first Skills', intervalMs: 5 });
  process.kill(first.pid, 'SIGSTOP');
  try {
    expect(second.logs().some(({ msg }) => msg === 'working')).toBe(false);
    await second.waitForLog('caches are in sync', TAKEOVER_MS);
    await waitCounts(second, source, 150);
    // Longer than the pause between two writes of the counts.
    const mark = await waitQuiet(second, 6_000);
    process.kill(first.pid, 'SIGCONT');
    expect(await ended(first)).toMatch(/ended by itself with [1-9]/);
    expect(ownWrites(second, mark)).toEqual([]);
  } finally {
    await first[Symbol.asyncDispose]().catch(() => undefined);
  }
  await changeSkill(repository, 's', 3, 1);
  await requestPass(second.k8s, source);
  await waitCounts(second, source, 150);
});

test('SIGTERM in the middle of the work: the lease is given away, and the other one finishes without doing anything twice', {
  timeout: 240_000,
}, async () => {
  await using first = await startOperator(info);
  const { account, namespace, bucket, k8s } = first;
  await using second = await startOperator(info, { account, namespace, bucket, until: 'started' });
  const repository = await newRepository(first);
  await repository.commit(marketplace(manySkills('s', 80)));
  const source = await applySource(second, 'team', repository);
  await eventually(async () => (await listSkills(second)).length > 10, { what: 'the first Skills', intervalMs: 5 });
  const { identity } = await first.waitForLog('leading');
  // Ends with 0, which only a leader does that got its work to stop in time.
  await first.stop();
  const [lease] = await k8s.list({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    namespace: account.namespace,
  });
  // Given away or taken over by now: nobody had to wait for it to run out.
  expect(lease?.spec?.holderIdentity ?? '').not.toBe(identity);
  await waitCounts(second, source, 80, TAKEOVER_MS * 3);
  const metrics = await second.metrics();
  expect(metrics.value('controller_runtime_reconcile_total', { result: 'panic' })).toBe(0);
  const mark = await waitQuiet(second);
  await requestPass(second.k8s, source);
  await waitQuiet(second);
  expect(ownWrites(second, mark).map(({ resource }) => resource)).toEqual(['marketplacesources/status']);
});

test('a standby writes nothing', async () => {
  await using first = await startOperator(info);
  const { account, namespace, bucket } = first;
  await using second = await startOperator(info, { account, namespace, bucket, until: 'started' });
  await waitQuiet(first);
  const metrics = await second.metrics();
  expect(metrics.value('rest_client_requests_total', { method: 'patch' })).toBe(0);
  expect(metrics.value('rest_client_requests_total', { method: 'watch' })).toBe(0);
});

test('the API server goes away for a moment and comes back: nothing is lost and nobody restarts', {
  timeout: 120_000,
}, async () => {
  await installCrds(info);
  await using proxy = await startApiProxy(await createOperatorAccount(info));
  await using operator = await startOperator(info, { account: proxy.account });
  const repository = await newRepository(operator);
  await repository.commit(marketplace(manySkills('s', 40)));
  const source = await applySource(operator, 'team', repository);
  await eventually(async () => (await listSkills(operator)).length > 5, { what: 'the first Skills', intervalMs: 5 });
  const { pid } = operator;
  proxy.down = true;
  const down = proxy.connections;
  await eventually(() => proxy.connections > down + 5, { timeoutMs: 9_000, what: 'some attempts' });
  proxy.down = false;
  await waitCounts(operator, source, 40);
  await changeSkill(repository, 's', 3, 1);
  proxy.cut();
  // The watch waits longer after each failure, as client-go's does.
  await requestPass(operator.k8s, source, 60_000);
  const skill = operator.skill('team.p0.s-3');
  await waitReady(operator.k8s, skill);
  await waitQuiet(operator);
  const mark = bookmark(info);
  await requestPass(operator.k8s, source);
  await waitQuiet(operator);
  expect(ownWrites(operator, mark).map(({ resource }) => resource)).toEqual(['marketplacesources/status']);
  expect(operator.pid).toBe(pid);
  await operator.check();
});

test('a leader that cannot reach the API server for the time of its lease ends', { timeout: 120_000 }, async () => {
  await installCrds(info);
  await using proxy = await startApiProxy(await createOperatorAccount(info));
  const operator = await startOperator(info, { account: proxy.account });
  try {
    proxy.down = true;
    expect(await ended(operator)).toMatch(/ended by itself with [1-9]/);
  } finally {
    await operator[Symbol.asyncDispose]().catch(() => undefined);
  }
});
