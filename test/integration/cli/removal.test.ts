import { describe, expect, inject, test } from 'vitest';
import { E2BStub } from '../../contract/engine/stubs/e2b.ts';
import { applySource, marketplace, newRepository, waitReady } from '../../support/market.ts';
import { startRegistry } from '../build/registries.ts';
import { GONE, install, ledgerOf } from './byo.ts';
import { skillctl } from './helpers.ts';

const info = inject('cluster');
/** For a machine on which everything takes five times as long. */
const slow = { timeout: 300_000 };
const NOWHERE = { e2b: `http://${GONE}`, registry: { host: GONE, username: 'a', password: 'password' } };

describe('removal never hangs', () => {
  test('a namespace with everything in it goes, although engine, registry and store went first', slow, async () => {
    await using stage = await install(info, NOWHERE, { storeGone: true });
    const { operator } = stage;
    const { k8s, namespace } = operator;
    await applySource(operator, 'team', { name: 'no-such-repository' });
    await stage.built('deletes');
    await stage.built('stays', { deletionPolicy: 'Orphan' });
    await k8s.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'git', namespace }, stringData: { a: 'b' } });
    const ref = { apiVersion: 'v1', kind: 'Namespace', name: namespace };
    await k8s.delete(ref);
    await k8s.waitGone(ref, { timeoutMs: 240_000 });
    const entries = (await ledgerOf(operator)).filter(({ templateID }) => templateID !== undefined);
    expect(entries).toMatchObject([{ namespace, skill: 'deletes', engine: 'e2b', why: 'DeletionExpired' }]);
    await operator.check();
  });

  test(
    'a Skill goes although builds and engines were taken out of the settings; the ledger knows what it left',
    slow,
    async () => {
      await using stage = await install(info, undefined);
      const { operator } = stage;
      const ref = await stage.built('alone');
      await operator.k8s.delete(ref);
      await operator.k8s.waitGone(ref, { timeoutMs: 120_000 });
      expect(await ledgerOf(operator)).toMatchObject([{ skill: 'alone', templateID: 'nobodystemplate00000' }]);
    },
  );
});

test(
  'skillctl uninstall keeps the order, tells what remains with a dead operator, and lets go by force',
  slow,
  async () => {
    await using stub = await new E2BStub().listen();
    await using registry = await startRegistry({ auth: 'basic' });
    await using stage = await install(info, { e2b: stub.url, registry });
    const { operator } = stage;
    const { k8s, namespace, account } = operator;
    const flags = ['--kubeconfig', info.kubeconfig, '-n', namespace, '--operator-namespace', account.namespace];
    const uninstall = (...args: string[]) => skillctl('/', 'uninstall', ...args, ...flags);
    const repository = await newRepository(operator);
    await repository.commit(marketplace({ p: { plain: {} } }));
    const source = await applySource(operator, 'team', repository);
    await waitReady(k8s, operator.skill('team.p.plain'));
    const image = await stage.built('image', { stub });
    const before = stub.templates.size;

    const plan = await uninstall();
    expect(plan.code).toBe(0);
    expect(plan.out).toContain(`  ${namespace}: 1 source, 2 Skills\nThe operator works (`);
    expect(plan.out).toMatch(
      /removes these from registry and engines:\n {2}\S+\/image: e2b template \w+, image 127\.0\.0\.1:\d+\/skills\//,
    );
    expect(await k8s.get(source)).toBeDefined();
    expect((await uninstall('--force')).err).toContain('--force takes effect with --yes only');

    const done = await uninstall('--yes', '--timeout', '3m');
    expect(done, done.err).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Deleted 1 source and 2 Skills\.\nNow:\n/),
    });
    expect([await k8s.get(source), await k8s.get(image), stub.templates.size]).toEqual([
      undefined,
      undefined,
      before - 1,
    ]);

    const orphan = await stage.built('orphan', { stub });
    const kept = await uninstall('--yes', '--orphan', '-o', 'json', '--timeout', '3m');
    expect([kept.code, JSON.parse(kept.out)]).toMatchObject([
      0,
      { orphaned: true, skills: 1, remaining: [], external: [{ skill: 'orphan' }] },
    ]);
    expect([await k8s.get(orphan), stub.templates.size]).toEqual([undefined, before]);

    const held = await stage.built('held', { stub });
    await operator.stop();
    const dead = await uninstall('--yes');
    expect(dead.code).toBe(1);
    expect(dead.err).toContain('No operator works');
    expect(dead.err).toMatch(
      /1 Skill did not go: no operator works[^\n]*\n {2}\S+\/held \(held by skills\.tfrobot\.io\/external-objects\)/,
    );
    expect(dead.err).toMatch(/Outside the cluster there are still:\n {2}\S+\/held: e2b template \w+/);
    expect((await k8s.get(held))?.metadata.deletionTimestamp).toBeDefined();
    const forced = await uninstall('--yes', '--force', '-o', 'json');
    expect([forced.code, JSON.parse(forced.out)]).toMatchObject([
      0,
      { remaining: [], leaked: [{ skill: 'held', engine: 'e2b' }] },
    ]);
    expect([await k8s.get(held), stub.templates.size]).toEqual([undefined, before + 1]);
    expect((await uninstall()).out).toContain('There is no MarketplaceSource and no Skill.');
  },
);
