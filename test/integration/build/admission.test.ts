import type { Job } from 'kubernetes-types/batch/v1.d.ts';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { buildJob, buildSecret } from '../../../src/build/manifest.ts';
import { networkPolicy } from '../../../src/build/network.ts';
import type { BuildSettings } from '../../../src/build/settings.ts';
import { K8s } from '../../support/k8s.ts';
import { FULL, INPUT, SETTINGS } from '../../unit/build/samples.ts';

let k8s: K8s;
let baseline: string;
let restricted: string;

beforeAll(async () => {
  k8s = new K8s(inject('cluster').kubeconfig);
  const enforce = (level: string) => ({ 'pod-security.kubernetes.io/enforce': level });
  baseline = await k8s.createNamespace('builds', enforce('baseline'));
  restricted = await k8s.createNamespace('builds', enforce('restricted'));
  for (const namespace of [baseline, restricted]) {
    await k8s.apply({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: SETTINGS.serviceAccount, namespace },
    });
  }
  await k8s.apply({
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata: { name: 'gvisor' },
    handler: 'runsc',
  } as never);
  await k8s.apply({
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name: 'low' },
    value: 10,
    preemptionPolicy: 'PreemptLowerPriority',
  } as never);
});
afterAll(() => k8s[Symbol.asyncDispose]());

/** Asks the API server what it would say; unknown and doubled fields are errors. */
async function dryRun(path: string, body: object): Promise<{ status: number; text: string }> {
  return await k8s.api.request('POST', `${path}?dryRun=All&fieldValidation=Strict`, { body });
}

/** The pod that the Job controller would create. */
function podOf(job: Job): object {
  const { metadata, spec } = job.spec?.template ?? {};
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, name: job.metadata?.name, namespace: job.metadata?.namespace },
    spec,
  };
}

const SETS: [name: string, settings: BuildSettings][] = [
  ['settings that say no more than they must', SETTINGS],
  ['every option in use', FULL],
];

describe.each(SETS)('with %s the API server takes', (_name, given) => {
  test('the Job', async () => {
    const job = buildJob(INPUT, { ...given, namespace: baseline });
    expect(await dryRun(`/apis/batch/v1/namespaces/${baseline}/jobs`, job)).toMatchObject({ status: 201 });
  });

  test('its pod under Pod Security baseline, which restricted refuses', async () => {
    const pods = [baseline, restricted].map((namespace) => podOf(buildJob(INPUT, { ...given, namespace })));
    const [accepted, refused] = await Promise.all([
      dryRun(`/api/v1/namespaces/${baseline}/pods`, pods[0] as object),
      dryRun(`/api/v1/namespaces/${restricted}/pods`, pods[1] as object),
    ]);
    expect(accepted).toMatchObject({ status: 201 });
    expect(refused).toMatchObject({ status: 403, text: expect.stringContaining('violates PodSecurity') });
  });

  test('the Secret of the URLs', async () => {
    const urls = { tar: 'https://s3/p?X=1', dockerfile: 'https://s3/d?X=2' };
    const secret = buildSecret(INPUT, { ...given, namespace: baseline }, '00000000-0000-4000-8000-000000000000', urls);
    expect(await dryRun(`/api/v1/namespaces/${baseline}/secrets`, secret)).toMatchObject({ status: 201 });
  });
});

test('the API server takes the NetworkPolicy', async () => {
  const egress = [{ to: [{ ipBlock: { cidr: '10.1.2.3/32' } }], ports: [{ protocol: 'TCP', port: 5000 }] }];
  const policy = networkPolicy({ namespace: baseline, network: { egress } });
  const path = `/apis/networking.k8s.io/v1/namespaces/${baseline}/networkpolicies`;
  expect(await dryRun(path, policy)).toMatchObject({ status: 201 });
});

test('a Job is resumed by a merge patch of one field, and keeps all others', async () => {
  const job = buildJob(INPUT, { ...SETTINGS, namespace: baseline });
  const [created] = await k8s.apply(job as never);
  const ref = { apiVersion: 'batch/v1', kind: 'Job', namespace: baseline, name: job.metadata?.name as string };
  const resumed = await k8s.patch(ref, { spec: { suspend: false } });
  const { suspend: _before, ...before } = (created as unknown as Job).spec as NonNullable<Job['spec']>;
  const { suspend, ...after } = (resumed as unknown as Job).spec as NonNullable<Job['spec']>;
  expect(suspend).toBe(false);
  expect(after).toEqual(before);
});
