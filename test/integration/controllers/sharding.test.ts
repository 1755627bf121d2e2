import { expect, inject, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { eventually } from '../../support/eventually.ts';
import { gitSource, marketplace, newRepository, waitReady } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';
import type { Samples } from '../../support/samples.ts';
import { skillsOf, waitSkills } from './harness.ts';

const info = inject('cluster');

const passesOf = async (operator: Operator): Promise<number> =>
  (await operator.metrics()).value('controller_runtime_reconcile_total', { controller: 'source' });

test('shards divide the sources of several namespaces, and a source that moves takes its Skills along', {
  timeout: 180_000,
}, async () => {
  await using first = await startOperator(info, { args: ['--shard-selector', 'shard=a'] });
  const { account, namespace, bucket, k8s } = first;
  const other = await k8s.createNamespace('market');
  const both = `${namespace},${other}`;
  await first.restart({ args: ['--watch-namespaces', both] });
  await using second = await startOperator(info, {
    account,
    namespace,
    bucket,
    args: ['--shard-selector', 'shard=b', '--watch-namespaces', both],
  });
  const repository = await newRepository(first);
  await repository.commit(marketplace({ docs: { pdf: {}, odt: {}, csv: {} } }));
  const apply = (name: string, home: string, labels: Record<string, string>) =>
    k8s.apply({ ...gitSource(first, name, repository), metadata: { name, namespace: home, labels } });
  const ref = (name: string, home: string) => ({
    apiVersion: API_VERSION,
    kind: 'MarketplaceSource',
    name,
    namespace: home,
  });
  await apply('here', namespace, { shard: 'a' });
  await apply('there', other, { shard: 'b' });
  await apply('nowhere', other, {});
  await Promise.all([waitReady(k8s, ref('here', namespace)), waitReady(k8s, ref('there', other))]);
  await waitSkills(first, 'here', ['docs.csv', 'docs.odt', 'docs.pdf']);
  expect([await passesOf(first), await passesOf(second)]).toEqual([1, 1]);
  const counted = (metrics: Samples) => ({
    ready: metrics.value('skill_operator_skills', { state: 'ready' }),
    sources: metrics.value('skill_operator_sources', { state: 'ready' }),
    leader: metrics.value('leader_election_master_status'),
    fetches: metrics.value('skill_operator_git_request_duration_seconds_count', { operation: 'fetch' }),
  });
  await eventually(
    async () => {
      expect(counted(await first.metrics())).toEqual({ ready: 3, sources: 1, leader: 1, fetches: 1 });
      return true;
    },
    { what: 'the metrics of the first shard' },
  );
  const text = await (await fetch(`${await first.address()}/metrics`, { signal: AbortSignal.timeout(10_000) })).text();
  for (const name of [namespace, 'docs.pdf', repository.name, bucket, '="other"']) expect(text).not.toContain(name);
  const unseen = await k8s.get(ref('nowhere', other));
  expect(unseen?.status).toEqual({ observedGeneration: -1 });

  // The source moves to the other shard, and at the same commit one of its directories is gone.
  await repository.commit({}, { remove: ['plugins/docs/skills/csv'] });
  await apply('here', namespace, { shard: 'b' });
  await waitSkills(first, 'here', ['docs.odt', 'docs.pdf']);
  await eventually(
    async () => {
      const skills = [...(await skillsOf(first, 'here')).values()];
      return skills.every(({ metadata }) => metadata.labels?.shard === 'b');
    },
    { what: 'the labels of the new shard' },
  );
  await eventually(async () => (await passesOf(second)) > 1, { what: 'the end of the pass of the new shard' });
  const leases = await k8s.list({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: account.namespace });
  expect(leases).toHaveLength(2);
});
