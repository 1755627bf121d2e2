import { expect, inject, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { eventually } from '../../support/eventually.ts';
import { applySource, marketplace, waitReady } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';
import { s3Client } from '../../support/s3.ts';
import { newMarket, skillsOf, waitSkills } from './harness.ts';

const NAMES = ['docs.one', 'docs.two', 'media.three'];

/** Digest of what each Skill serves, once all are Ready. */
async function servedDigests(operator: Operator): Promise<Record<string, string>> {
  await waitSkills(operator, 'team', NAMES);
  const skills = NAMES.map((name) => operator.skill(`team.${name}`));
  await Promise.all(skills.map((skill) => waitReady(operator.k8s, skill)));
  const found = await skillsOf(operator, 'team');
  return Object.fromEntries([...found].map(([name, { status }]) => [name, status.served.digest]));
}

/** Every object of the bucket with the time of its last write. */
async function written({ info, bucket }: Operator): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const { name, lastModified } of s3Client(info.s3).listObjectsV2(bucket, '', true))
    if (name && lastModified) found[name] = lastModified.toISOString();
  return found;
}

/** The operator stops, and its objects go with the cluster. */
async function lose(operator: Operator): Promise<void> {
  const { k8s, namespace } = operator;
  await operator.stop();
  const skills = await k8s.list({ apiVersion: API_VERSION, kind: 'Skill', namespace });
  const objects = [operator.source('team'), ...skills.map(({ metadata }) => operator.skill(metadata.name))];
  for (const ref of objects) await k8s.delete(ref);
  const gone = async () => (await Promise.all(objects.map((ref) => k8s.get(ref)))).every((one) => !one);
  await eventually(gone, { timeoutMs: 30_000, what: 'an empty cluster' });
}

test('a lost cluster comes back from its installation id, the bucket and the sources, and stores nothing again', async () => {
  const info = inject('cluster');
  await using first = await startOperator(info);
  const files = marketplace({ docs: { one: {}, two: { 'scripts/a.py': 'print(1)\n' } }, media: { three: {} } });
  const { repository } = await newMarket(first, 'team', files);
  const before = await servedDigests(first);
  const stored = await written(first);
  // An archive and a manifest for each.
  expect(Object.keys(stored).length).toBeGreaterThanOrEqual(2 * NAMES.length);
  const kept = { apiVersion: 'v1', kind: 'ConfigMap', name: 'skill-operator-installation' };
  const id = (await first.k8s.get({ ...kept, namespace: first.account.namespace }))?.data.id as string;
  await lose(first);

  // Its namespace is another one, which would give it another id.
  await using second = await startOperator(info, {
    bucket: first.bucket,
    namespace: first.namespace,
    args: ['--installation', id, '--sweep', 'false'],
  });
  await applySource(second, 'team', repository);
  expect(await servedDigests(second)).toEqual(before);
  expect(await written(second)).toEqual(stored);
}, 180_000);
