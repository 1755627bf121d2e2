import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { condition, type K8sObject } from '../../support/k8s.ts';
import { applySource, marketplace, newRepository, requestPass, waitNotReady, waitReady } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';
import { listObjects } from '../../support/s3.ts';
import { type StoreFault, type StoreProxy, startStoreProxy } from './s3-proxy.ts';
import { changeSkill, listSkills, manySkills, waitCounts } from './support.ts';

const info = inject('cluster');
let operator: Operator;
let store: StoreProxy;
beforeAll(async () => {
  store = await startStoreProxy(info.s3.endpoint);
  operator = await startOperator(info, { args: ['--store-endpoint', store.endpoint] });
});
afterAll(async () => {
  await operator?.[Symbol.asyncDispose]();
  await store?.[Symbol.asyncDispose]();
});

afterEach(async () => {
  store.fault = 'none';
  await operator.check();
});

const ready = (object: K8sObject) => condition(object, 'Ready');

/** The number of tries within the busiest second of what came in since an index of `requests`. */
function busiestSecond(since: number): number {
  const times = store.requests.slice(since).map(({ at }) => at);
  return Math.max(0, ...times.map((start) => times.filter((at) => at >= start && at < start + 1_000).length));
}

describe('while the store is down', () => {
  test.for<[StoreFault, string, string, number]>([
    ['cut', 'a', 'StoreUnavailable', 20],
    ['error', 'b', 'StoreUnavailable', 20],
    ['no-bucket', 'd', 'StoreBucketNotFound', 20],
  ])('(%s) one key probes it, the others wait, and all recover at once', async ([fault, prefix, reason, size]) => {
    const repository = await newRepository(operator);
    await repository.commit(marketplace(manySkills(prefix, size)));
    store.fault = fault;
    const source = await applySource(operator, prefix, repository);
    // The source is none the worse for it.
    await waitReady(operator.k8s, source);
    await eventually(
      async () => {
        const skills = await listSkills(operator, prefix);
        return skills.length === size && skills.every((skill) => ready(skill)?.reason === reason) && skills;
      },
      { timeoutMs: 60_000, what: `${size} Skills that say ${reason}` },
    );
    const skill = await operator.k8s.get(operator.skill(`${prefix}.p0.${prefix}-3`));
    expect(condition(skill as K8sObject, 'Materialized')).toMatchObject({ status: 'False', reason });
    expect(ready(skill as K8sObject)?.message).toContain(new URL(store.endpoint).host);
    expect(skill?.status.served).toBeUndefined();
    // Three whole probes later: a probe is one call with its own few quick retries.
    const since = store.requests.length;
    await eventually(() => store.requests.length - since >= 6, { timeoutMs: 30_000, what: 'probes' });
    expect(busiestSecond(since)).toBeLessThanOrEqual(4);
    store.fault = 'none';
    const back = performance.now();
    await waitCounts(operator, source, size, 30_000);
    expect(performance.now() - back).toBeLessThan(15_000);
    const objects = await listObjects(info.s3, operator.bucket);
    for (const { status } of await listSkills(operator, prefix)) {
      const own = objects.filter(({ key }) => key.includes(status.served.digest));
      expect(own.map(({ key }) => key.split('/').at(-1))).toEqual(['manifest.json', 'package.tar']);
    }
  });

  test('what is served stays served, and the new version follows once it is back', async () => {
    const repository = await newRepository(operator);
    await repository.commit(marketplace(manySkills('c', 1)));
    const source = await applySource(operator, 'c', repository);
    const ref = operator.skill('c.p0.c-0');
    const before = (await waitReady(operator.k8s, ref)).status.served;
    store.fault = 'cut';
    const commit = await changeSkill(repository, 'c', 0, 1);
    await requestPass(operator.k8s, source);
    const broken = await waitNotReady(operator.k8s, ref, 'StoreUnavailable');
    expect(broken.status.served).toEqual(before);
    expect(ready(broken)?.message).toContain('stays served');
    expect(condition(broken, 'Serving')?.status).toBe('True');
    store.fault = 'none';
    await operator.k8s.waitFor(ref, ({ status }) => status?.served?.commit === commit, { timeoutMs: 30_000 });
    await waitReady(operator.k8s, ref);
  });
});

describe('a store that is set up wrongly is one reason for all, which says what to set', () => {
  test.for<[string, string[], Record<string, string>, string, RegExp]>([
    [
      'a wrong secret key',
      [],
      { SKILL_OPERATOR_STORE_SECRET_KEY: 'canary-wrong-secret-key' },
      'StoreAccessDenied',
      /secret key.*STORE_SECRET_KEY/,
    ],
    [
      'an unknown access key',
      [],
      { SKILL_OPERATOR_STORE_ACCESS_KEY: 'NOBODY' },
      'StoreAccessDenied',
      /access key.*STORE_ACCESS_KEY/,
    ],
    [
      'a port where nobody listens',
      ['--store-endpoint', 'http://127.0.0.1:9'],
      {},
      'StoreUnavailable',
      /127\.0\.0\.1:9/,
    ],
  ])('%s', async ([, args, env, reason, says]) => {
    await using other = await startOperator(info, { args, env });
    const repository = await newRepository(other);
    await repository.commit(marketplace({ docs: { pdf: {}, odt: {} } }));
    const source = await applySource(other, 'team', repository);
    for (const name of ['pdf', 'odt']) {
      const skill = await waitNotReady(other.k8s, other.skill(`team.docs.${name}`), reason);
      expect(ready(skill)?.message).toMatch(says);
      expect(ready(skill)?.message).not.toContain('canary');
    }
    await waitReady(other.k8s, source);
  });
});
