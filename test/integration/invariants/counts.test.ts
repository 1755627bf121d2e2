import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { bookmark } from '../../support/audit.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestRepository } from '../../support/git.ts';
import type { Ref } from '../../support/k8s.ts';
import { applySource, marketplace, newRepository, requestPass } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';
import { type StoreProxy, startStoreProxy } from './s3-proxy.ts';
import { ALONE, changeSkill, gitRequests, manySkills, ownWrites, tally, waitCounts, waitQuiet } from './support.ts';

let operator: Operator;
let store: StoreProxy;
const markets = new Map<string, { repository: TestRepository; source: Ref; size: number }>();

beforeAll(async () => {
  const info = inject('cluster');
  store = await startStoreProxy(info.s3.endpoint);
  operator = await startOperator(info, { args: ['--store-endpoint', store.endpoint, ...ALONE] });
});
afterAll(async () => {
  await operator?.[Symbol.asyncDispose]();
  await store?.[Symbol.asyncDispose]();
});

/** What went to single objects of the store since an index of `requests`; the heal that lists the bucket some time after a start is none of it. */
const objectRequests = (since: number): string[] =>
  store.requests
    .slice(since)
    .filter(({ method, path }) => method !== 'GET' || path.split('/').filter(Boolean).length > 1)
    .map(({ method, path }) => `${method} ${path}`);

/** The pass and the counts are two writers of one object: now and then one of them has to look again. */
const STATUSES = 'patch marketplacesources/status';

const market = (name: string) => {
  const found = markets.get(name);
  if (!found) throw new Error(`the test that makes ${name} did not run`);
  return found;
};

test.for([
  ['small', 100],
  ['large', 1_000],
] as const)(
  'a cold start of a %s marketplace of %i skills costs two API writes and two PUTs per skill',
  { timeout: 180_000 },
  async ([name, size]) => {
    const repository = await newRepository(operator);
    await repository.commit(marketplace(manySkills(name, size)));
    const mark = bookmark(operator.info);
    const puts = store.requests.length;
    const source = await applySource(operator, name, repository);
    markets.set(name, { repository, source, size });
    await waitCounts(operator, source, size, 150_000);
    await waitQuiet(operator);
    const { [STATUSES]: statuses = 0, [`${STATUSES} 409`]: conflicts = 0, ...rest } = tally(ownWrites(operator, mark));
    expect(rest).toEqual({ 'patch skills': size, 'patch skills/status': size, 'create events': 1 });
    // Its own, and the counts: the first at once, then one in five seconds.
    expect(statuses + conflicts).toBeLessThanOrEqual(30);
    expect(store.count('PUT', puts)).toBe(2 * size);
    expect(gitRequests(operator, repository, 'fetch')).toBe(1);
  },
);

test.for(['small', 'large'])('a change of one skill of the %s marketplace costs the same', async (name) => {
  const { repository, source } = market(name);
  await waitQuiet(operator);
  const ref = operator.skill(`${name}.p0.${name}-7`);
  const mark = bookmark(operator.info);
  const requests = store.requests.length;
  const [lists, fetches] = [gitRequests(operator, repository, 'ls-refs'), gitRequests(operator, repository, 'fetch')];
  const commit = await changeSkill(repository, name, 7, 1);
  await requestPass(operator.k8s, source);
  await operator.k8s.waitFor(ref, ({ status }) => status?.served?.commit === commit);
  await waitQuiet(operator, 6_000);
  const { [STATUSES]: statuses = 0, [`${STATUSES} 409`]: conflicts = 0, ...rest } = tally(ownWrites(operator, mark));
  expect(rest).toEqual({ 'patch skills': 1, 'patch skills/status': 1, 'create events': 1 });
  // The pass; the counts when the Skill waits and when it is ready again.
  expect(statuses).toBeLessThanOrEqual(3);
  expect(conflicts).toBeLessThanOrEqual(1);
  expect(store.count('PUT', requests)).toBe(2);
  expect(objectRequests(requests).length).toBeLessThanOrEqual(4);
  expect(gitRequests(operator, repository, 'ls-refs') - lists).toBe(1);
  expect(gitRequests(operator, repository, 'fetch') - fetches).toBe(1);
});

test.for(['small', 'large'])(
  'a pass over the %s marketplace that finds nothing new costs one ls-remote and its answer',
  async (name) => {
    const { repository, source } = market(name);
    await waitQuiet(operator);
    const mark = bookmark(operator.info);
    const requests = store.requests.length;
    const [lists, fetches] = [gitRequests(operator, repository, 'ls-refs'), gitRequests(operator, repository, 'fetch')];
    await requestPass(operator.k8s, source);
    await waitQuiet(operator);
    expect(tally(ownWrites(operator, mark))).toEqual({ [STATUSES]: 1 });
    expect(objectRequests(requests)).toEqual([]);
    expect(gitRequests(operator, repository, 'ls-refs') - lists).toBe(1);
    expect(gitRequests(operator, repository, 'fetch') - fetches).toBe(0);
  },
);

test('labels and annotations that mean nothing to it cost nothing', async () => {
  await waitQuiet(operator);
  const { source, repository } = market('small');
  const mark = bookmark(operator.info);
  const lists = gitRequests(operator, repository, 'ls-refs');
  const reconciles = (await operator.metrics()).value('controller_runtime_reconcile_total', { controller: 'skill' });
  for (const ref of [source, operator.skill('small.p0.small-1'), operator.skill('small.p0.small-2')]) {
    await operator.k8s.patch(ref, { metadata: { labels: { note: 'x' }, annotations: { note: 'x' } } });
  }
  // What is asked for afterwards is answered, so the changes before it have been seen.
  await requestPass(operator.k8s, operator.skill('small.p0.small-3'));
  await waitQuiet(operator);
  expect(tally(ownWrites(operator, mark))).toEqual({ 'patch skills/status': 1 });
  expect(gitRequests(operator, repository, 'ls-refs') - lists).toBe(0);
  const after = (await operator.metrics()).value('controller_runtime_reconcile_total', { controller: 'skill' });
  expect(after - reconciles).toBeLessThanOrEqual(2);
});

test('a restart over 1100 Ready skills writes nothing, stores nothing and lists each kind once', async () => {
  await waitQuiet(operator);
  const mark = bookmark(operator.info);
  const requests = store.requests.length;
  const fetches = gitRequests(operator, market('large').repository, 'fetch');
  await operator.restart();
  const metrics = await eventually(
    async () => {
      const now = await operator.metrics();
      const done = (controller: string) => now.value('controller_runtime_reconcile_total', { controller });
      return done('skill') >= 1_100 && done('source') >= 2 && done('counts') >= 2 && now;
    },
    { timeoutMs: 60_000, what: 'a pass over every object' },
  );
  await waitQuiet(operator);
  expect(tally(ownWrites(operator, mark))).toEqual({});
  expect(objectRequests(requests)).toEqual([]);
  expect(gitRequests(operator, market('large').repository, 'fetch')).toBe(fetches);
  // A page holds 250 objects or 1 MiB, some 240 of these Skills, and the first is a short probe: six of them, and one of the sources.
  expect(metrics.value('rest_client_requests_total', { method: 'list' })).toBeLessThanOrEqual(7);
  expect(metrics.value('controller_runtime_reconcile_total', { controller: 'skill' })).toBeLessThanOrEqual(1_105);
}, 120_000);

test('idle means zero writes: a hundred passes of a hundred sources', async () => {
  const repository = await newRepository(operator);
  const names = Array.from({ length: 100 }, (_, i) => `idle-${i}`);
  await repository.commit(marketplace(manySkills('idle', 100)));
  await Promise.all(
    names.map((name) => applySource(operator, name, repository, { interval: '10s', include: [`*/${name}`] })),
  );
  for (const name of names) await waitCounts(operator, operator.source(name), 1);
  await waitQuiet(operator, 3_000);
  const mark = bookmark(operator.info);
  const requests = store.requests.length;
  const [lists, fetches] = [gitRequests(operator, repository, 'ls-refs'), gitRequests(operator, repository, 'fetch')];
  const before = await operator.metrics();
  await eventually(() => gitRequests(operator, repository, 'ls-refs') - lists >= 100, {
    timeoutMs: 50_000,
    what: 'a hundred passes',
    intervalMs: 200,
  });
  expect(tally(ownWrites(operator, mark))).toEqual({});
  expect(objectRequests(requests)).toEqual([]);
  expect(gitRequests(operator, repository, 'fetch') - fetches).toBe(0);
  const after = await operator.metrics();
  const grown = (name: string, labels: Record<string, string>) =>
    after.value(name, labels) - before.value(name, labels);
  expect(grown('controller_runtime_reconcile_total', { controller: 'skill' })).toBe(0);
  expect(grown('rest_client_requests_total', { method: 'list' })).toBe(0);
}, 120_000);
