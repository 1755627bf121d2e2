import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest';
import { Reflector } from '../../../src/kube/reflector.ts';
import type { KubeClient } from '../../../src/kube/rest.ts';
import { Cache, type Change } from '../../../src/kube/store.ts';
import { eventually } from '../../support/eventually.ts';
import { type Fault, startFaultyProxy } from './faulty-proxy.ts';
import {
  CONFIG_MAPS,
  type ConfigMap,
  clientOf,
  configMap,
  directClient,
  dropNamespace,
  kubeconfigPath,
  makeNamespace,
  signal,
} from './setup.ts';

let direct: KubeClient;

beforeAll(() => {
  direct = directClient();
});
afterAll(() => direct.close());

/** A namespace and a proxy of its own, so that the tests can run side by side. */
async function scene({ onTestFinished }: TestContext, over: { labelSelector?: string; watchSeconds?: number } = {}) {
  const namespace = await makeNamespace(direct);
  const proxy = await startFaultyProxy(kubeconfigPath());
  const client = clientOf(proxy.url);
  const cache = new Cache<ConfigMap>({ freeze: true });
  const changes: Change<ConfigMap>[] = [];
  const stop = new AbortController();
  const { watchSeconds = 6, ...scope } = over;
  const reflector = new Reflector<ConfigMap>({
    client,
    resource: CONFIG_MAPS,
    scope: { namespace, ...scope },
    cache,
    onChange: (change) => changes.push(change),
    watchSeconds,
    marginMs: 500,
  });
  let ended: Promise<void> | undefined;
  onTestFinished(async () => {
    stop.abort();
    await ended;
    await client.close();
    await proxy.close();
    await dropNamespace(direct, namespace);
  });
  /** Runs the reflector until the test ends; resolves when it watches. */
  const start = async () => {
    ended = reflector.run(stop.signal);
    await reflector.whenSynced(signal);
    await eventually(() => proxy.log.at(-1)?.url.includes('watch=true'), { what: 'the watch' });
  };
  const put = (name: string, value: string, labels?: Record<string, string>) => {
    const body = { ...configMap(namespace, name, { v: value }), metadata: { name, namespace, labels } };
    const patch = { kind: 'apply', fieldManager: 'test', force: true, body } as const;
    return direct.patch<ConfigMap>(CONFIG_MAPS, namespace, name, patch, signal);
  };
  const drop = (name: string) => direct.delete(CONFIG_MAPS, namespace, name, {}, signal);
  return { namespace, proxy, client, cache, changes, reflector, start, put, drop };
}

/** Time in which something unwanted may show itself. */
const watchFor = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** name=value of everything but the ConfigMap that a controller-manager puts into each namespace. */
const contents = (cache: Cache<ConfigMap>) =>
  cache
    .list()
    .filter((o) => o.metadata.name !== 'kube-root-ca.crt')
    .map((o) => `${o.metadata.name}=${o.data?.v}`)
    .sort();

describe.concurrent('a reflector on the real API server', () => {
  test('lists, then follows creations, updates and deletions; managedFields stay out', async (context) => {
    const { namespace, cache, changes, start, put, drop } = await scene(context);
    await put('a', '1');
    await start();
    expect(contents(cache)).toEqual(['a=1']);
    await put('b', '1');
    await put('a', '2');
    await drop('b');
    await eventually(() => changes.some((c) => c.type === 'deleted' && c.key === `${namespace}/b`), {
      what: 'the deletion',
    });
    expect(contents(cache)).toEqual(['a=2']);
    expect(cache.get(`${namespace}/a`)?.metadata).not.toHaveProperty('managedFields');
  });

  test('pages a large list', async (context) => {
    const { client, cache, start, put } = await scene(context);
    await Promise.all(Array.from({ length: 230 }, (_, i) => put(`o${i}`, '1')));
    const before = client.requests.list ?? 0;
    await start();
    expect(contents(cache).length).toBe(230);
    expect((client.requests.list ?? 0) - before).toBe(2);
  });

  test('list and watch see the same label selector', async (context) => {
    const { namespace, cache, reflector, start, put } = await scene(context, { labelSelector: 'team=a' });
    await put('in', '1', { team: 'a' });
    await put('out', '1', { team: 'b' });
    await start();
    await put('out2', '1', { team: 'b' });
    await put('in2', '1', { team: 'a' });
    await eventually(() => cache.size === 2, { what: 'the second object' });
    await put('in', '1', { team: 'b' });
    await eventually(() => cache.size === 1, { what: 'leaving the selector' });
    expect(contents(cache)).toEqual(['in2=1']);
    // The stream has not shown a later version than this one's, so only the selector can keep it out.
    await put('out3', '1', { team: 'b' });
    await reflector.refresh(`${namespace}/out3`, signal);
    expect(contents(cache)).toEqual(['in2=1']);
  });

  test('an own write is waited for until the watch shows it', async (context) => {
    const { namespace, cache, start, put } = await scene(context);
    await put('a', '1');
    await start();
    const written = await put('a', '2');
    cache.expect(`${namespace}/a`, written.metadata.resourceVersion);
    await eventually(() => cache.pending(`${namespace}/a`) === undefined, { what: 'the write to be seen' });
    expect(contents(cache)).toEqual(['a=2']);
  });

  test('refresh reads live, in both directions', async (context) => {
    const { namespace, proxy, cache, changes, reflector, start, put, drop } = await scene(context, {
      watchSeconds: 60,
    });
    await put('a', '1');
    await put('b', '1');
    await start();
    proxy.frozen = true;
    await put('a', '2');
    await drop('b');
    const count = changes.length;
    await reflector.refresh(`${namespace}/a`, signal);
    await reflector.refresh(`${namespace}/b`, signal);
    expect(contents(cache)).toEqual(['a=2']);
    expect(changes.slice(count).map((c) => c.type)).toEqual(['updated', 'deleted']);
  });

  test('an idle reflector asks for nothing but its next watch', async (context) => {
    const { proxy, start } = await scene(context, { watchSeconds: 60 });
    await start();
    const before = proxy.log.length;
    await watchFor(3000);
    expect(proxy.log.length - before).toBe(0);
  });
});

describe.concurrent('a reflector behind a bad connection converges, loses no deletion and asks at most once a second', () => {
  const faults: [string, Fault][] = [
    ['500', { kind: 'status', code: 500, reason: 'InternalError' }],
    ['429 with Retry-After', { kind: 'status', code: 429, reason: 'TooManyRequests', headers: { 'retry-after': '2' } }],
    ['410 for the watch and the list', { kind: 'status', code: 410, reason: 'Expired' }],
    ['a real 410: a version long gone', { kind: 'ancient' }],
    ['half a frame, then the end', { kind: 'half' }],
    ['a reset connection', { kind: 'reset' }],
    ['silence', { kind: 'blackhole' }],
  ];

  test.for(faults)('%s', async ([, fault], context) => {
    const { namespace, proxy, cache, changes, start, put, drop } = await scene(context);
    await put('stays', '1');
    await put('goes', '1');
    await start();
    const firstRequest = proxy.log.length;
    const began = performance.now();
    proxy.fault = () => fault;
    if (fault.kind === 'blackhole') proxy.frozen = true;
    else proxy.cut();
    await put('new', '1');
    await put('stays', '2');
    await drop('goes');
    // Long enough for a fast loop to show itself.
    await watchFor(5000);
    const requests = proxy.log.length - firstRequest;
    expect(requests).toBeLessThanOrEqual((performance.now() - began) / 1000 + 4);
    proxy.fault = () => ({ kind: 'pass' });
    proxy.frozen = false;
    proxy.cut();
    await eventually(() => contents(cache).join() === 'new=1,stays=2', {
      timeoutMs: 40_000,
      what: 'the cache to converge',
    });
    expect(changes.filter((c) => c.type === 'deleted').map((c) => c.key)).toEqual([`${namespace}/goes`]);
    // And it goes on watching.
    await put('after', '1');
    await eventually(() => cache.get(`${namespace}/after`), { timeoutMs: 40_000, what: 'a later object' });
  });

  test('a silent stream is given up after its deadline, without anybody cutting it', async (context) => {
    const { proxy, cache, start, put } = await scene(context, { watchSeconds: 2 });
    await put('a', '1');
    await start();
    proxy.frozen = true;
    await put('a', '2');
    await watchFor(1000);
    expect(contents(cache)).toEqual(['a=1']);
    const silentSince = proxy.log.length;
    await eventually(() => proxy.log.length > silentSince, { what: 'a new watch' });
    proxy.frozen = false;
    await eventually(() => contents(cache).join() === 'a=2', { timeoutMs: 30_000, what: 'the update' });
  });
});
