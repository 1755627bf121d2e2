import { describe, expect, inject, test } from 'vitest';
import { K8s } from '../../support/k8s.ts';
import { createOperatorAccount, installCrds } from '../../support/operator-account.ts';

const info = inject('cluster');
const GROUP = 'skills.tfrobot.io/v1alpha1';

describe('the operator in a test', () => {
  test('finds both kinds served once the CRDs are installed, however many tests install them', async () => {
    await Promise.all([installCrds(info), installCrds(info)]);
    await using k8s = new K8s(info.kubeconfig);
    for (const kind of ['MarketplaceSource', 'Skill']) {
      expect(await k8s.list({ apiVersion: GROUP, kind, namespace: 'default' })).toEqual([]);
    }
  });

  test("has the chart's rights and no others", async () => {
    await installCrds(info);
    const { kubeconfig } = await createOperatorAccount(info);
    await using operator = new K8s(kubeconfig);
    await using admin = new K8s(info.kubeconfig);
    expect(await operator.list({ apiVersion: GROUP, kind: 'Skill' })).toBeInstanceOf(Array);
    await expect(operator.list({ apiVersion: 'v1', kind: 'Secret' })).rejects.toMatchObject({ status: 403 });
    const other = await admin.createNamespace('other');
    const lease = (target: string) => ({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'probe', namespace: target },
    });
    await expect(operator.apply(lease(other))).rejects.toMatchObject({ status: 403, reason: 'Forbidden' });
  });

  test('may be there twice, in namespaces of their own', async () => {
    const [one, two] = await Promise.all([createOperatorAccount(info), createOperatorAccount(info)]);
    expect(one.namespace).not.toBe(two.namespace);
    for (const { kubeconfig } of [one, two]) {
      await using operator = new K8s(kubeconfig);
      expect(await operator.list({ apiVersion: GROUP, kind: 'MarketplaceSource' })).toBeInstanceOf(Array);
    }
  });
});
