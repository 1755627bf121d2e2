import { expect, test } from 'vitest';
import { condition } from '../../support/k8s.ts';
import {
  applySource,
  isObserved,
  marketplace,
  newRepository,
  requestPass,
  skillMd,
  waitReady,
} from '../../support/market.ts';
import { listObjects, s3Client } from '../../support/s3.ts';
import { conditionsOf, newMarket, useOperator, waitSkills } from './harness.ts';

const harness = useOperator();

test('a suspended source sees its generation, keeps Ready and does nothing; resumed it catches up', async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'pause', marketplace({ p: { paused: {} } }));
  const skill = await waitReady(operator.k8s, operator.skill('pause.p.paused'));
  await operator.k8s.patch(source, { spec: { suspend: true } });
  const before = await operator.k8s.waitFor(source, isObserved);
  expect(conditionsOf(before).filter((line) => !line.startsWith('SkillsHealthy'))).toEqual([
    'Ready=True Succeeded',
    'Fetched=True Succeeded',
  ]);
  await repository.commit(marketplace({ p: { later: {} } }));
  const asked = await requestPass(operator.k8s, source);
  expect(asked.status.revision).toBe(before.status.revision);
  await operator.k8s.patch(source, { spec: { exclude: ['p/*'] } });
  const changed = await operator.k8s.waitFor(source, isObserved);
  expect(changed.status.revision).toBe(before.status.revision);
  expect(condition(changed, 'Reconciling')).toBeUndefined();
  // A suspended source does not suspend its Skills.
  const answered = await requestPass(operator.k8s, operator.skill('pause.p.paused'));
  expect(answered.status.served).toEqual(skill.status.served);
  await operator.k8s.patch(source, { spec: { suspend: false, exclude: null } });
  await waitSkills(operator, 'pause', ['p.paused', 'p.later']);
});

test('a source that is suspended from the start says so and makes nothing', async () => {
  const { operator } = harness;
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ p: { asleep: {} } }));
  const source = await applySource(operator, 'asleep', repository, { suspend: true });
  const object = await operator.k8s.waitFor(source, isObserved);
  expect(conditionsOf(object)).toEqual(['Ready=False Suspended']);
  expect(object.status.revision).toBeUndefined();
  await waitSkills(operator, 'asleep', []);
  await operator.k8s.patch(source, { spec: { suspend: false } });
  await waitReady(operator.k8s, source);
  await waitReady(operator.k8s, operator.skill('asleep.p.asleep'));
});

test("a person's suspend on a generated Skill survives the passes of its source and freezes what is served", async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'froze', marketplace({ p: { frozen: {} } }));
  const ref = operator.skill('froze.p.frozen');
  const served = (await waitReady(operator.k8s, ref)).status.served;
  await operator.k8s.apply(
    {
      apiVersion: ref.apiVersion,
      kind: ref.kind,
      metadata: { name: ref.name, namespace: operator.namespace },
      spec: { suspend: true },
    },
    { manager: 'person', force: false },
  );
  await operator.k8s.waitFor(ref, isObserved);
  const commit = await repository.commit(marketplace({ p: { frozen: skillMd({ name: 'frozen', body: 'New.' }) } }));
  await requestPass(operator.k8s, source);
  const moved = await operator.k8s.waitFor(
    ref,
    (object) => object.spec.revision.commit === commit && isObserved(object),
  );
  expect(moved.spec.suspend).toBe(true);
  expect(moved.status.served).toEqual(served);
  expect(conditionsOf(moved)[0]).toBe('Ready=True Succeeded');
  await requestPass(operator.k8s, source);
  const asked = await requestPass(operator.k8s, ref);
  expect([asked.spec.suspend, asked.status.served]).toEqual([true, served]);
  await operator.k8s.patch(ref, { spec: { suspend: false } });
  await operator.k8s.waitFor(ref, ({ status }) => status.served.commit === commit);
});

test('requestedAt is answered by both kinds even when nothing is to be done, and moves nothing else', async () => {
  const { operator } = harness;
  const { source } = await newMarket(operator, 'ask', marketplace({ p: { asked: {} } }));
  const ref = operator.skill('ask.p.asked');
  await waitReady(operator.k8s, ref);
  await operator.k8s.waitFor(source, ({ status }) => status.skills?.ready === 1);
  for (const target of [source, ref]) {
    const before = await operator.k8s.waitFor(target, () => true);
    const after = await requestPass(operator.k8s, target);
    const { lastHandledReconcileAt, ...rest } = after.status;
    expect(rest).toEqual(before.status);
    expect(lastHandledReconcileAt).toMatch(/^test-\d+$/);
    expect(after.metadata.generation).toBe(1);
  }
});

test('a request to a Skill verifies the stored package and heals what is lost or damaged', async () => {
  const { operator } = harness;
  const { bucket, info } = operator;
  await newMarket(operator, 'heal', marketplace({ p: { healed: { 'a.md': 'text' } } }));
  const ref = operator.skill('heal.p.healed');
  const { served } = (await waitReady(operator.k8s, ref)).status;
  const stored = async () => {
    const objects = await listObjects(info.s3, bucket);
    return objects.filter(({ key }) => key.includes(served.digest));
  };
  const before = await stored();
  const client = s3Client(info.s3);
  const [manifest, tar] = before.map(({ key }) => key);
  await client.removeObject(bucket, manifest ?? '');
  await requestPass(operator.k8s, ref);
  expect(await stored()).toEqual(before);
  await client.putObject(bucket, tar ?? '', Buffer.from('damaged'));
  const { status } = await requestPass(operator.k8s, ref);
  expect(await stored()).toEqual(before);
  expect(status.served).toEqual(served);
});
