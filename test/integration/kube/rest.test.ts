import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { KubeError, LeaseLost } from '../../../src/kube/errors.ts';
import type { KubeClient } from '../../../src/kube/rest.ts';
import { type FaultyProxy, startFaultyProxy } from './faulty-proxy.ts';
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
let proxy: FaultyProxy;
let namespace: string;

beforeAll(async () => {
  direct = directClient();
  proxy = await startFaultyProxy(kubeconfigPath());
  namespace = await makeNamespace(direct);
});
beforeEach(() => {
  proxy.fault = () => ({ kind: 'pass' });
});
afterAll(async () => {
  await dropNamespace(direct, namespace);
  await direct.close();
  await proxy.close();
});

const status = (code: number, headers: Record<string, string> = {}) =>
  ({ kind: 'status', code, reason: 'Test', headers }) as const;

describe('the client', () => {
  test('creates, reads, merges, patches and deletes', async () => {
    const made = await direct.create<ConfigMap>(
      CONFIG_MAPS,
      namespace,
      configMap(namespace, 'crud', { a: '1' }),
      signal,
    );
    expect(made.metadata.uid).toBeTruthy();
    expect((await direct.get<ConfigMap>(CONFIG_MAPS, namespace, 'crud', signal))?.data).toEqual({ a: '1' });
    await direct.patch(CONFIG_MAPS, namespace, 'crud', { kind: 'merge', body: { data: { b: '2' } } }, signal);
    const patch = { kind: 'json', body: [{ op: 'remove', path: '/data/a' }] } as const;
    const after = await direct.patch<ConfigMap>(
      CONFIG_MAPS,
      namespace,
      'crud',
      { ...patch, body: [...patch.body] },
      signal,
    );
    expect(after.data).toEqual({ b: '2' });
    await direct.delete(CONFIG_MAPS, namespace, 'crud', { uid: made.metadata.uid ?? '' }, signal);
    expect(await direct.get(CONFIG_MAPS, namespace, 'crud', signal)).toBeUndefined();
    await direct.delete(CONFIG_MAPS, namespace, 'crud', {}, signal);
  });

  test('deletes that very object only', async () => {
    await direct.create(CONFIG_MAPS, namespace, configMap(namespace, 'very'), signal);
    const wrong = direct.delete(
      CONFIG_MAPS,
      namespace,
      'very',
      { uid: '00000000-0000-0000-0000-000000000000' },
      signal,
    );
    await expect(wrong).rejects.toMatchObject({ code: 409, reason: 'Conflict' });
    expect(await direct.get(CONFIG_MAPS, namespace, 'very', signal)).toBeDefined();
  });

  test('an unknown resource is an error, never an absent object', async () => {
    const unknown = { ...CONFIG_MAPS, group: 'not.installed.example', plural: 'things' };
    await expect(direct.get(unknown, namespace, 'a', signal)).rejects.toMatchObject({
      code: 404,
      reason: 'ResourceNotFound',
    });
    await expect(direct.delete(unknown, namespace, 'a', {}, signal)).rejects.toMatchObject({
      reason: 'ResourceNotFound',
    });
  });

  test('a refusal carries causes and names the object', async () => {
    const error = await direct.create(CONFIG_MAPS, namespace, configMap(namespace, 'Bad_Name'), signal).catch((e) => e);
    expect(error).toBeInstanceOf(KubeError);
    expect(error).toMatchObject({ code: 422, reason: 'Invalid', causes: [{ field: 'metadata.name' }] });
    expect(error.message).toContain(`create configmaps ${namespace}/Bad_Name: 422 Invalid`);
  });

  test('five hundred calls share the pool', async () => {
    const client = clientOf(proxy.url);
    const before = proxy.connections;
    await Promise.all(Array.from({ length: 500 }, () => client.get(CONFIG_MAPS, namespace, 'none', signal)));
    expect(proxy.connections - before).toBeLessThanOrEqual(16);
    expect(client.requests).toMatchObject({ get: 500, list: 0 });
    expect(proxy.log.at(-1)?.agent).toBe('skill-operator/test (test)');
    await client.close();
  });

  test('a watch does not take a place from the calls', async () => {
    const client = clientOf(proxy.url, undefined, { connections: 1 });
    const stop = new AbortController();
    const options = { resourceVersion: '', timeoutSeconds: 30, marginMs: 1000 };
    const watch = client.watch(CONFIG_MAPS, { namespace }, options, stop.signal);
    await watch.next();
    await client.get(CONFIG_MAPS, namespace, 'none', AbortSignal.timeout(5000));
    stop.abort(new Error('enough'));
    await expect(watch.next()).rejects.toThrow('enough');
    await client.close();
  });

  test.each([429, 503])('sits out %i as long as the server asks', async (code) => {
    const client = clientOf(proxy.url);
    let refusals = 2;
    proxy.fault = () => (refusals-- > 0 ? status(code, { 'retry-after': '1' }) : { kind: 'pass' });
    const start = performance.now();
    expect(await client.get(CONFIG_MAPS, namespace, 'none', signal)).toBeUndefined();
    expect(performance.now() - start).toBeGreaterThanOrEqual(2000);
    await client.close();
  });

  test('hands a long wait to the caller, and gives up after five tries', async () => {
    const sleeps: number[] = [];
    const clock = {
      now: () => Date.now(),
      monotonic: () => performance.now(),
      sleep: async (ms: number) => void sleeps.push(ms),
      after: (ms: number, fn: () => void) => {
        const timer = setTimeout(fn, ms);
        return () => clearTimeout(timer);
      },
    };
    const client = clientOf(proxy.url, undefined, { clock, random: () => 0 });
    proxy.fault = () => status(429, { 'retry-after': '60' });
    await expect(client.get(CONFIG_MAPS, namespace, 'a', signal)).rejects.toMatchObject({
      code: 429,
      retryAfterMs: 60_000,
    });
    expect(sleeps).toEqual([]);
    proxy.fault = () => status(503);
    const before = client.requests.get ?? 0;
    await expect(client.get(CONFIG_MAPS, namespace, 'a', signal)).rejects.toMatchObject({ code: 503 });
    expect((client.requests.get ?? 0) - before).toBe(5);
    expect(sleeps).toEqual([500, 1000, 2000, 4000]);
    await client.close();
  });

  test('a rotated token is read again once; a refused one is an error', async () => {
    let current = 'token-one-for-test';
    const client = clientOf(proxy.url, () => current);
    let valid = current;
    proxy.fault = ({ authorization }) => (authorization === `Bearer ${valid}` ? { kind: 'pass' } : status(401));
    await client.get(CONFIG_MAPS, namespace, 'a', signal);
    valid = 'token-two-for-test';
    current = valid;
    await client.get(CONFIG_MAPS, namespace, 'a', signal);
    valid = 'nobody-has-this';
    const before = proxy.log.length;
    await expect(client.get(CONFIG_MAPS, namespace, 'a', signal)).rejects.toMatchObject({ code: 401 });
    expect(proxy.log.length - before).toBe(2);
    await client.close();
  });

  test("a broken connection is a Network error, the caller's abort stays the caller's", async () => {
    const client = clientOf(proxy.url);
    proxy.fault = () => ({ kind: 'reset' });
    await expect(client.get(CONFIG_MAPS, namespace, 'a', signal)).rejects.toMatchObject({ code: 0, reason: 'Network' });
    proxy.fault = () => ({ kind: 'blackhole' });
    const stop = new AbortController();
    const call = client.get(CONFIG_MAPS, namespace, 'a', stop.signal);
    stop.abort(new Error('enough of it'));
    await expect(call).rejects.toThrow('enough of it');
    await client.close();
  });

  test('a fence stops writes before they go out, and reads not at all', async () => {
    const fence = () => {
      throw new LeaseLost('not the leader');
    };
    const client = clientOf(proxy.url, undefined, { fence });
    const before = proxy.log.length;
    await expect(client.create(CONFIG_MAPS, namespace, configMap(namespace, 'no'), signal)).rejects.toBeInstanceOf(
      LeaseLost,
    );
    expect(proxy.log.length).toBe(before);
    expect(await client.get(CONFIG_MAPS, namespace, 'no', signal)).toBeUndefined();
    await client.close();
  });

  test('calls are observed by verb, resource and code', async () => {
    const seen: string[] = [];
    const client = directClient({ observe: (c) => seen.push(`${c.verb} ${c.resource} ${c.code} ${c.seconds > 0}`) });
    await client.get(CONFIG_MAPS, namespace, 'none', signal);
    await client.listPage(CONFIG_MAPS, { namespace }, { limit: 1 }, signal);
    expect(seen).toEqual(['get configmaps 404 true', 'list configmaps 200 true']);
    await client.close();
  });
});
