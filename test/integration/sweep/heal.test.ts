import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { bookmark } from '../../support/audit.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestRepository } from '../../support/git.ts';
import { condition, type K8sObject } from '../../support/k8s.ts';
import { applySource, marketplace, newRepository, requestPass, skillMd, waitReady } from '../../support/market.ts';
import { type Operator, type OperatorOptions, startOperator } from '../../support/operator.ts';
import { listObjects, readObject, s3Client } from '../../support/s3.ts';
import { type StoreProxy, startStoreProxy } from '../invariants/s3-proxy.ts';
import { manySkills, ownWrites, tally, waitCounts, waitQuiet } from '../invariants/support.ts';

const info = inject('cluster');
/** A heal every two seconds. */
const OFTEN = ['--sweep-interval-hours', '0.0006'];

const operators: Operator[] = [];
async function operatorFor(options: OperatorOptions = {}): Promise<Operator> {
  const operator = await startOperator(info, { ...options, args: [...OFTEN, ...(options.args ?? [])] });
  operators.push(operator);
  return operator;
}
afterAll(async () => {
  for (const operator of operators) await operator[Symbol.asyncDispose]();
});

/** The keys of a Skill's served package. */
async function packageOf({ bucket }: Operator, { status }: K8sObject): Promise<string[]> {
  const objects = await listObjects(info.s3, bucket);
  return objects.map(({ key }) => key).filter((key) => key.includes(`/${status.served.digest}/`));
}

const remove = async ({ bucket }: Operator, keys: string[]): Promise<void> => {
  for (const key of keys) await s3Client(info.s3).removeObject(bucket, key);
};

const lists = async (operator: Operator): Promise<number> =>
  (await operator.metrics()).value('skill_operator_store_requests_total', { operation: 'list' });

/** Waits until heal has looked `rounds` times more. */
async function waitRounds(operator: Operator, rounds: number): Promise<void> {
  const before = await lists(operator);
  await eventually(async () => (await lists(operator)) >= before + rounds, {
    timeoutMs: 30_000,
    what: `${rounds} heals`,
    intervalMs: 200,
  });
}

const stateOf = async ({ k8s, account }: Operator): Promise<Record<string, string>> =>
  (await k8s.get({ apiVersion: 'v1', kind: 'ConfigMap', name: 'skill-operator-state', namespace: account.namespace }))
    ?.data ?? {};

describe('packages that the bucket lost', () => {
  let operator: Operator;
  let store: StoreProxy;
  let repository: TestRepository;
  beforeAll(async () => {
    store = await startStoreProxy(info.s3.endpoint);
    operator = await operatorFor({ args: ['--store-endpoint', store.endpoint] });
    repository = await newRepository(operator);
    await repository.commit(marketplace(manySkills('s', 12)));
    await waitCounts(operator, await applySource(operator, 'team', repository), 12);
  });
  afterAll(() => store?.[Symbol.asyncDispose]());

  const skill = async (index: number): Promise<K8sObject> =>
    await waitReady(operator.k8s, operator.skill(`team.p0.s-${index}`));

  test('none: a heal is one list, no other request to the store and no write to the API', async () => {
    const mark = await waitQuiet(operator);
    // An operator of one namespace does not see who else names a package: it never marks or deletes any.
    const rubbish = `v1/${(await operator.waitForLog('working')).installation}/packages/other/${'e'.repeat(64)}/package.tar`;
    await s3Client(info.s3).putObject(operator.bucket, rubbish, 'x');
    const [since, before] = [store.requests.length, await lists(operator)];
    await waitRounds(operator, 2);
    const methods = store.requests.slice(since).map(({ method }) => method);
    expect(new Set(methods)).toEqual(new Set(['GET']));
    expect(methods.length).toBe((await lists(operator)) - before);
    expect(tally(ownWrites(operator, mark))).toEqual({});
    expect((await listObjects(info.s3, operator.bucket)).filter(({ key }) => key.includes('/marks/'))).toEqual([]);
  });

  test.each([
    ['all of it', 0, (keys: string[]) => keys],
    ['its manifest', 1, (keys: string[]) => keys.filter((key) => key.endsWith('/manifest.json'))],
    ['its tar', 2, (keys: string[]) => keys.filter((key) => key.endsWith('/package.tar'))],
  ])('%s: it is stored again from Git, with the same bytes, and nobody notices', async (_part, index, choose) => {
    const object = await skill(index);
    const keys = await packageOf(operator, object);
    const bytes = await Promise.all(keys.map((key) => readObject(info.s3, operator.bucket, key)));
    const mark = bookmark(info);
    await remove(operator, choose(keys));
    await eventually(async () => (await packageOf(operator, object)).length === keys.length, {
      timeoutMs: 30_000,
      what: 'the package to be back',
    });
    expect(await Promise.all(keys.map((key) => readObject(info.s3, operator.bucket, key)))).toEqual(bytes);
    expect((await skill(index)).status.served).toEqual(object.status.served);
    expect(tally(ownWrites(operator, mark))).toEqual({});
  });

  test('so many at once: StoreSuspect, and nothing is stored until a person allows it', async () => {
    const objects = await Promise.all([3, 4, 5, 6].map(skill));
    const keys = (await Promise.all(objects.map((object) => packageOf(operator, object)))).flat();
    await remove(operator, keys);
    const { token, message, allow } = await eventually(
      async () => JSON.parse((await stateOf(operator)).StoreSuspect ?? 'false') as false | Record<string, string>,
      { timeoutMs: 30_000, what: 'StoreSuspect' },
    );
    expect(message).toMatch(/^4 of 12 packages that Skills name are not in the bucket, such as packages\//);
    expect(allow).toContain(`skills.tfrobot.io/allow-store-heal=${token}`);
    await waitRounds(operator, 2);
    const present = (await listObjects(info.s3, operator.bucket)).map(({ key }) => key);
    expect(keys.filter((key) => present.includes(key))).toEqual([]);
    // A pass that has another reason does not take the package for lost.
    const asked = await requestPass(operator.k8s, operator.skill('team.p0.s-7'));
    expect(condition(asked, 'Serving')?.status).toBe('True');
    expect((await operator.metrics()).value('skill_operator_blocked', { block: 'StoreSuspect' })).toBe(1);
    const ref = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: 'skill-operator-state',
      namespace: operator.account.namespace,
    };
    await operator.k8s.annotate(ref, { 'skills.tfrobot.io/allow-store-heal': token as string });
    await eventually(
      async () => {
        const now = (await listObjects(info.s3, operator.bucket)).map(({ key }) => key);
        return keys.every((key) => now.includes(key));
      },
      { timeoutMs: 30_000, what: 'the packages to be back' },
    );
    await eventually(async () => !(await stateOf(operator)).StoreSuspect, { timeoutMs: 30_000, what: 'the end of it' });
  });
});

describe('a served package that is lost and that Git no longer offers', () => {
  let operator: Operator;
  let repository: TestRepository;
  const ref = () => operator.skill('team.docs.pdf');
  const broken = { docs: { pdf: '---\nname: other\n---\n' } };
  beforeAll(async () => {
    operator = await operatorFor();
    repository = await newRepository(operator);
    await repository.commit(marketplace({ docs: { pdf: {}, odt: {} } }));
    const source = await applySource(operator, 'team', repository);
    await waitCounts(operator, source, 2);
    await repository.commit(marketplace(broken));
    await requestPass(operator.k8s, source);
    await operator.k8s.waitFor(ref(), (object) => condition(object, 'Ready')?.reason === 'Invalid');
  });

  const serving = (object: K8sObject) => condition(object, 'Serving');
  const waitServing = (status: 'True' | 'False') =>
    operator.k8s.waitFor(ref(), (object) => serving(object)?.status === status, { timeoutMs: 40_000 });

  test('says PackageLost and serves nothing; its sibling is none the worse', async () => {
    const object = (await operator.k8s.get(ref())) as K8sObject;
    await remove(operator, await packageOf(operator, object));
    const lost = await waitServing('False');
    expect(serving(lost)?.reason).toBe('PackageLost');
    expect(serving(lost)?.message).toContain(
      `the package of version ${object.status.served.version} is no longer in the bucket`,
    );
    expect(condition(lost, 'Ready')?.message).not.toContain('stays served');
    expect(lost.status.served).toEqual(object.status.served);
    await waitReady(operator.k8s, operator.skill('team.docs.odt'));
  });

  test('a restart and further heals leave it as it is, without a write', async () => {
    await waitQuiet(operator);
    const mark = bookmark(info);
    await operator.restart();
    await waitRounds(operator, 2);
    expect(tally(ownWrites(operator, mark).filter(({ resource }) => resource.startsWith('skills')))).toEqual({});
    expect(serving((await operator.k8s.get(ref())) as K8sObject)?.reason).toBe('PackageLost');
  });

  test('is served again once the bucket has it back', async () => {
    // Another Skill with the same content brings back the very bytes, as a restored backup would.
    const twin = await newRepository(operator);
    await twin.commit(marketplace({ docs: { pdf: {} } }));
    const source = await applySource(operator, 'twin', twin);
    await operator.k8s.waitFor(operator.skill('twin.docs.pdf'), ({ status }) => status?.candidate ?? status?.served);
    const back = await waitServing('True');
    expect(serving(back)?.reason).toBe('ServingVersion');
    expect(condition(back, 'Ready')).toMatchObject({ status: 'False', reason: 'Invalid' });
    await operator.k8s.delete(source);
  });

  test('is served again once Git offers the content again', async () => {
    const object = (await operator.k8s.get(ref())) as K8sObject;
    await remove(operator, await packageOf(operator, object));
    await waitServing('False');
    await repository.commit(marketplace({ docs: { pdf: skillMd({ name: 'pdf' }) } }));
    await requestPass(operator.k8s, operator.source('team'));
    const back = await waitReady(operator.k8s, ref());
    expect(serving(back)?.status).toBe('True');
    expect(await packageOf(operator, back)).toHaveLength(2);
  });
});

test('a stored package with other bytes is written anew on request, and by itself where a pass trips over it', async () => {
  const operator = await operatorFor();
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ docs: { pdf: {} } }));
  await applySource(operator, 'team', repository);
  const ref = operator.skill('team.docs.pdf');
  const object = await waitReady(operator.k8s, ref);
  const [manifest = '', tar = ''] = await packageOf(operator, object);
  const bytes = await readObject(info.s3, operator.bucket, tar);
  const damage = (key: string) => s3Client(info.s3).putObject(operator.bucket, key, Buffer.alloc(bytes.length, 'x'));
  await damage(tar);
  await requestPass(operator.k8s, ref);
  expect(await readObject(info.s3, operator.bucket, tar)).toEqual(bytes);
  // A second Skill comes to the same content and finds other bytes under its digest.
  await damage(manifest);
  const twin = await newRepository(operator);
  await twin.commit(marketplace({ other: { pdf: {} } }));
  await applySource(operator, 'twin', twin);
  const held = await operator.k8s.waitFor(
    operator.skill('twin.other.pdf'),
    ({ status }) => status?.candidate?.phase === 'Held',
    {
      timeoutMs: 20_000,
    },
  );
  expect(held.status.candidate.digest).toBe(object.status.served.digest);
  expect((await readObject(info.s3, operator.bucket, manifest)).includes('"files"')).toBe(true);
});
