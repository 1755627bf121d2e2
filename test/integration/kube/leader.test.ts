import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { LeaderElection } from '../../../src/kube/leader.ts';
import { LEASES, type Lease } from '../../../src/kube/lease.ts';
import type { KubeClient } from '../../../src/kube/rest.ts';
import { eventually } from '../../support/eventually.ts';
import { type FaultyProxy, startFaultyProxy } from './faulty-proxy.ts';
import {
  CONFIG_MAPS,
  clientOf,
  configMap,
  directClient,
  dropNamespace,
  kubeconfigPath,
  makeNamespace,
  signal,
} from './setup.ts';

/** Short times, so that a lease runs out within the test. */
const TIMES = { leaseMs: 3000, renewMs: 2000, retryMs: 300 };

let client: KubeClient;
let namespace: string;

beforeAll(async () => {
  client = directClient();
  namespace = await makeNamespace(client);
});
afterAll(async () => {
  await dropNamespace(client, namespace);
  await client.close();
});

function start(name: string, identity: string, api: KubeClient = client, clock: Clock = systemClock) {
  const leader = new LeaderElection({ api, namespace, name, identity, clock, ...TIMES });
  const stop = new AbortController();
  const work = { started: false, aborted: undefined as unknown };
  const ended = leader.run(stop.signal, async (s) => {
    work.started = true;
    if (!s.aborted) await once(s, 'abort');
    work.aborted = s.reason;
  });
  // A loss before anybody waits for it is part of the test.
  ended.catch(() => undefined);
  return { leader, stop, work, ended };
}

const leaseOf = (name: string) => client.get<Lease>(LEASES, namespace, name, signal);

describe('leader election on the real API server', () => {
  test('one leads; when it stops it releases the lease and the other takes over at once', async () => {
    const one = start('two', 'one');
    await eventually(() => one.work.started, { what: 'the first leader' });
    const two = start('two', 'two');
    await eventually(
      async () => ((await leaseOf('two'))?.spec?.renewTime ?? '') > ((await leaseOf('two'))?.spec?.acquireTime ?? ''),
      {
        what: 'a renewal',
      },
    );
    expect([one.leader.isLeader(), two.leader.isLeader(), two.work.started]).toEqual([true, false, false]);
    const asked = performance.now();
    one.stop.abort(new Error('SIGTERM'));
    await one.ended;
    expect(one.leader.isLeader()).toBe(false);
    await eventually(() => two.work.started, { what: 'the second leader' });
    expect(performance.now() - asked).toBeLessThan(TIMES.leaseMs);
    expect((await leaseOf('two'))?.spec).toMatchObject({ holderIdentity: 'two' });
    two.stop.abort(new Error('SIGTERM'));
    await two.ended;
    expect((await leaseOf('two'))?.spec?.holderIdentity).toBe('');
  });

  test('clocks that are a day apart neither depose a holder nor keep its heir waiting', async () => {
    const DAY_MS = 86_400_000;
    const skewed = (ms: number): Clock => ({ ...systemClock, now: () => systemClock.now() + ms });
    // To the others its renewals are a day old; to the second they lie two days back, to the third they are of now.
    const one = start('skew', 'one', client, skewed(-DAY_MS));
    await eventually(() => one.work.started, { what: 'the leader' });
    const others = [start('skew', 'ahead', client, skewed(DAY_MS)), start('skew', 'right')];
    const renewals = new Set<string>();
    await eventually(
      async () => {
        renewals.add((await leaseOf('skew'))?.spec?.renewTime ?? '');
        // Longer than a whole lease.
        return renewals.size > (2 * TIMES.leaseMs) / TIMES.retryMs;
      },
      { what: 'many renewals', timeoutMs: 40_000, intervalMs: 50 },
    );
    expect([one.leader.isLeader(), ...others.map(({ work }) => work.started)]).toEqual([true, false, false]);
    one.stop.abort(new Error('SIGTERM'));
    await one.ended;
    await eventually(() => others.some(({ work }) => work.started), { what: 'an heir' });
    expect(others.filter(({ leader }) => leader.isLeader())).toHaveLength(1);
    for (const { stop } of others) stop.abort();
    await Promise.all(others.map(({ ended }) => ended));
  });

  test("a person's edit of the lease does not depose the holder, another holder does", async () => {
    const one = start('edited', 'one');
    await eventually(() => one.work.started, { what: 'the leader' });
    const edit = (body: object) => client.patch(LEASES, namespace, 'edited', { kind: 'merge', body }, signal);
    await edit({ metadata: { annotations: { note: 'hello' } } });
    const before = (await leaseOf('edited'))?.spec?.renewTime ?? '';
    await eventually(async () => ((await leaseOf('edited'))?.spec?.renewTime ?? '') > before, { what: 'a renewal' });
    await edit({ spec: { holderIdentity: 'usurper' } });
    await expect(one.ended).rejects.toThrowErrorMatchingInlineSnapshot(`[LeaseLost: the lease is held by "usurper"]`);
    expect(one.work.aborted).toMatchObject({ name: 'LeaseLost' });
    expect(one.leader.isLeader()).toBe(false);
  });

  test('work that fails on its own gives the lease away and reports its error', async () => {
    const leader = new LeaderElection({ api: client, namespace, name: 'failing', identity: 'one', ...TIMES });
    const run = leader.run(signal, async () => {
      throw new Error('the work broke');
    });
    await expect(run).rejects.toThrow('the work broke');
    expect((await leaseOf('failing'))?.spec?.holderIdentity).toBe('');
  });

  test('times must fit each other', () => {
    expect(
      () =>
        new LeaderElection({ api: client, namespace, name: 'x', identity: 'x', leaseMs: 10, renewMs: 10, retryMs: 1 }),
    ).toThrow(TypeError);
  });

  describe('behind a connection that hangs', () => {
    let proxy: FaultyProxy;
    beforeAll(async () => {
      proxy = await startFaultyProxy(kubeconfigPath());
    });
    afterAll(() => proxy.close());

    test('the holder stops believing before another may lead', async () => {
      const hanging = clientOf(proxy.url);
      const one = start('hang', 'one', hanging);
      await eventually(() => one.work.started, { what: 'the leader' });
      const two = start('hang', 'two');
      proxy.fault = () => ({ kind: 'blackhole' });
      await expect(one.ended).rejects.toMatchObject({ name: 'LeaseLost' });
      expect(two.leader.isLeader()).toBe(false);
      await eventually(() => two.work.started, { what: 'the second leader' });
      expect(one.leader.isLeader()).toBe(false);
      two.stop.abort();
      await two.ended;
      await hanging.close();
    });
  });

  test('a leader stopped past its lease writes nothing after it goes on, and ends', async () => {
    await client.create(CONFIG_MAPS, namespace, configMap(namespace, 'written'), signal);
    const child = startChild('stopped');
    try {
      await once(child.stdout as NodeJS.ReadableStream, 'data');
      await eventually(async () => (await written())?.includes('stopped-'), { what: 'the first writes' });
      child.kill('SIGSTOP');
      const two = start('lease', 'second');
      await eventually(() => two.work.started, { what: 'the second leader' });
      const before = await version();
      child.kill('SIGCONT');
      const [code] = child.exitCode === null ? await once(child, 'exit') : [child.exitCode];
      expect(code).toBe(3);
      expect(await version()).toBe(before);
      two.stop.abort();
      await two.ended;
    } finally {
      child.kill('SIGKILL');
    }
  });
});

const read = () =>
  client.get<{ metadata: { name: string; resourceVersion?: string }; data?: Record<string, string> }>(
    CONFIG_MAPS,
    namespace,
    'written',
    signal,
  );
const written = async () => (await read())?.data?.n;
const version = async () => (await read())?.metadata.resourceVersion;

function startChild(identity: string): ChildProcess {
  const script = fileURLToPath(new URL('leader-child.ts', import.meta.url));
  const { leaseMs, renewMs, retryMs } = TIMES;
  const args = [script, kubeconfigPath(), namespace, identity, ...[leaseMs, renewMs, retryMs].map(String)];
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
}
