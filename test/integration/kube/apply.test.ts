import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { applyCreate, applyStatus, applyUpdate, preconditionOf, type Writer } from '../../../src/kube/apply.ts';
import { EventRecorder } from '../../../src/kube/events.ts';
import { addFinalizer, removeFinalizer } from '../../../src/kube/finalizer.ts';
import type { KubeClient } from '../../../src/kube/rest.ts';
import type { KubeObject, Resource } from '../../../src/kube/types.ts';
import { eventually } from '../../support/eventually.ts';
import { CONFIG_MAPS, type ConfigMap, configMap, directClient, dropNamespace, makeNamespace, signal } from './setup.ts';

const DEPLOYMENTS: Resource = {
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  namespaced: true,
};
const EVENTS: Resource = { group: 'events.k8s.io', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

let client: KubeClient;
let namespace: string;
let writer: Writer;
const other = (): Writer => ({ ...writer, fieldManager: 'somebody-else' });

beforeAll(async () => {
  client = directClient();
  namespace = await makeNamespace(client);
  writer = { api: client, resource: CONFIG_MAPS, fieldManager: 'test-operator' };
});
afterAll(async () => {
  await dropNamespace(client, namespace);
  await client.close();
});

const get = (name: string) => client.get<ConfigMap>(CONFIG_MAPS, namespace, name, signal);

describe('server-side apply (invariant I3)', () => {
  test("create makes the object, and meets another owner's field with 409", async () => {
    await applyCreate(writer, configMap(namespace, 'mine', { a: '1' }), signal);
    await expect(applyCreate(other(), configMap(namespace, 'mine', { a: '2' }), signal)).rejects.toMatchObject({
      code: 409,
    });
    expect((await get('mine'))?.data).toEqual({ a: '1' });
  });

  test('update drops what it leaves out and keeps what others own', async () => {
    const made = await applyCreate<ConfigMap>(writer, configMap(namespace, 'shared', { a: '1', b: '1' }), signal);
    await applyCreate(other(), configMap(namespace, 'shared', { theirs: '1' }), signal);
    const stale = applyUpdate(writer, preconditionOf(made), configMap(namespace, 'shared', { a: '2' }), signal);
    await expect(stale).rejects.toMatchObject({ code: 409, reason: 'Conflict' });
    const live = await get('shared');
    const after = await applyUpdate<ConfigMap>(
      writer,
      preconditionOf(live as ConfigMap),
      configMap(namespace, 'shared', { a: '2' }),
      signal,
    );
    expect(after.data).toEqual({ a: '2', theirs: '1' });
  });

  test('a late update does not bring a deleted object back, nor touch its namesake', async () => {
    const made = await applyCreate<ConfigMap>(writer, configMap(namespace, 'late', { a: '1' }), signal);
    await client.delete(CONFIG_MAPS, namespace, 'late', {}, signal);
    const late = () => applyUpdate(writer, preconditionOf(made), configMap(namespace, 'late', { a: '2' }), signal);
    await expect(late()).rejects.toMatchObject({ code: 409 });
    expect(await get('late')).toBeUndefined();
    await applyCreate(writer, configMap(namespace, 'late', { a: 'namesake' }), signal);
    await expect(late()).rejects.toMatchObject({ code: 409 });
    expect((await get('late'))?.data).toEqual({ a: 'namesake' });
  });

  test('an object that was never read cannot be updated', () => {
    expect(() => preconditionOf({ metadata: { name: 'x' } })).toThrowErrorMatchingInlineSnapshot(
      `[TypeError: object "x" has no uid or resourceVersion; read it first]`,
    );
  });

  test('status is applied alone, under the same conditions', async () => {
    const labels = { app: 'x' };
    const spec = {
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'x' }] } },
    };
    const deployments = { ...writer, resource: DEPLOYMENTS };
    const body = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'd', namespace }, spec };
    const made = await applyCreate<KubeObject & { status?: { observedGeneration?: number } }>(
      deployments,
      body,
      signal,
    );
    const after = await applyStatus(deployments, made, { collisionCount: 7 }, signal);
    expect(after).toMatchObject({ status: { collisionCount: 7 }, spec: { replicas: 0 } });
    await expect(applyStatus(deployments, made, { collisionCount: 8 }, signal)).rejects.toMatchObject({ code: 409 });
  });
});

describe('finalizers', () => {
  test("are added to that version only, keep others', and the last one removed lets the object go", async () => {
    const made = await applyCreate<ConfigMap>(writer, configMap(namespace, 'fin'), signal);
    const one = await addFinalizer(writer, made, 'test.example/one', signal);
    expect(await addFinalizer(writer, one, 'test.example/one', signal)).toBe(one);
    await expect(addFinalizer(writer, made, 'test.example/two', signal)).rejects.toMatchObject({ code: 409 });
    const two = await addFinalizer(writer, one, 'test.example/two', signal);
    expect(two.metadata.finalizers).toEqual(['test.example/one', 'test.example/two']);
    await client.delete(CONFIG_MAPS, namespace, 'fin', {}, signal);
    const dying = (await get('fin')) as ConfigMap;
    expect(dying.metadata.deletionTimestamp).toBeTruthy();
    const left = await removeFinalizer(writer, dying, 'test.example/one', signal);
    expect(left.metadata.finalizers).toEqual(['test.example/two']);
    expect(await removeFinalizer(writer, left, 'test.example/one', signal)).toBe(left);
    await removeFinalizer(writer, left, 'test.example/two', signal);
    expect(await get('fin')).toBeUndefined();
  });

  test('a finalizer for an object that was replaced is refused', async () => {
    const made = await applyCreate<ConfigMap>(writer, configMap(namespace, 'replaced'), signal);
    await client.delete(CONFIG_MAPS, namespace, 'replaced', {}, signal);
    await applyCreate(writer, configMap(namespace, 'replaced'), signal);
    await expect(addFinalizer(writer, made, 'test.example/one', signal)).rejects.toMatchObject({ code: 409 });
  });
});

describe('events', () => {
  test('reach the API server once, cut to its limit and without secrets; a refusal harms nobody', async () => {
    const recorder = new EventRecorder({
      api: client,
      reportingController: 'test.example/c',
      reportingInstance: 'pod-1',
    });
    const creates = client.requests.create ?? 0;
    const stop = new AbortController();
    const ended = recorder.run(stop.signal);
    const regarding = (await applyCreate<ConfigMap>(writer, configMap(namespace, 'told'), signal)) as KubeObject;
    const input = { type: 'Warning', reason: 'Invalid', action: 'Validate' } as const;
    recorder.record(
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'no-such-ns' } },
      { ...input, note: 'lost' },
    );
    for (let i = 0; i < 3; i++)
      recorder.record(regarding, { ...input, note: `see https://u:pass1234@h/ ${'ä'.repeat(900)}` });
    recorder.record(regarding, { ...input, note: 'second' });
    const events = await eventually(
      async () => {
        const { items } = await client.listPage<KubeObject & { note: string }>(
          EVENTS,
          { namespace },
          { limit: 10 },
          signal,
        );
        return items.length >= 2 && items;
      },
      { what: 'the events' },
    );
    const notes = events.map((e) => e.note).sort();
    expect(notes.length).toBe(2);
    expect(notes[0]).toBe('second');
    expect(notes[1]?.startsWith('see https://***@h/ ä')).toBe(true);
    expect(Buffer.byteLength(notes[1] ?? '')).toBeLessThanOrEqual(1024);
    // The refused one and the two; the repetitions were not even sent.
    expect((client.requests.create ?? 0) - creates).toBe(3);
    stop.abort();
    await ended;
  });
});
