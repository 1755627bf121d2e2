import { describe, expect, test } from 'vitest';
import { Cache } from '../../../src/kube/store.ts';
import type { KubeObject } from '../../../src/kube/types.ts';
import { compareVersions, reaches } from '../../../src/kube/versions.ts';
import { FakeClock } from './fake-clock.ts';

const object = (name: string, resourceVersion: string, labels: Record<string, string> = {}): KubeObject => ({
  metadata: { name, namespace: 'team-a', uid: `u-${name}`, resourceVersion, labels },
});
const cache = () =>
  new Cache<KubeObject>({
    indexes: { color: (o) => (o.metadata.labels?.color ? [o.metadata.labels.color] : []) },
    freeze: true,
    clock: new FakeClock(),
  });
const replace = (c: Cache<KubeObject>, objects: KubeObject[], resourceVersion: string) =>
  [...c.replace(objects, resourceVersion)].flat();
const names = (objects: KubeObject[]) => objects.map((o) => o.metadata.name).sort();
const summary = (changes: { type: string; key: string; initial: boolean }[]) =>
  changes.map((c) => `${c.type} ${c.key}${c.initial ? ' (initial)' : ''}`);

describe('resourceVersions', () => {
  test.each([
    ['5', '5', 0],
    ['9', '10', -1],
    ['10', '9', 1],
    ['11', '12', -1],
    ['18446744073709551616', '18446744073709551615', 1],
    ['', '5', undefined],
    ['a', 'b', undefined],
    ['a', 'a', 0],
    ['05', '5', undefined],
    ['-1', '5', undefined],
  ])('%s against %s', (a, b, want) => {
    const order = compareVersions(a, b);
    expect(order === undefined ? undefined : Math.sign(order)).toBe(want);
  });

  test('nothing seen reaches nothing', () => expect(reaches(undefined, '1')).toBe(false));
});

describe('the cache', () => {
  test('finds objects by key, namespace and index, and follows changes of the indexed value', () => {
    const c = cache();
    c.put(object('a', '1', { color: 'red' }), 'stream');
    c.put(object('b', '2', { color: 'red' }), 'stream');
    expect(c.get('team-a/a')?.metadata.resourceVersion).toBe('1');
    expect(names(c.byIndex('color', 'red'))).toEqual(['a', 'b']);
    c.put(object('a', '3', { color: 'blue' }), 'stream');
    expect(names(c.byIndex('color', 'red'))).toEqual(['b']);
    expect(names(c.byIndex('color', 'blue'))).toEqual(['a']);
    c.remove(object('b', '4'));
    expect(c.byIndex('color', 'red')).toEqual([]);
    expect(names(c.list('team-a'))).toEqual(['a']);
    expect(c.list('team-b')).toEqual([]);
    expect(c.size).toBe(1);
  });

  test('refuses an index nobody declared', () => {
    expect(() => cache().byIndex('size', 'big')).toThrowErrorMatchingInlineSnapshot(
      `[TypeError: the cache has no index "size"; declare it where the cache is made]`,
    );
  });

  test('frozen objects refuse changes', () => {
    const c = cache();
    c.put(object('a', '1'), 'stream');
    expect(() => Object.assign(c.get('team-a/a')?.metadata ?? {}, { name: 'b' })).toThrow(TypeError);
  });

  test('the first list fills it, a later one replaces it and emits what vanished', () => {
    const c = cache();
    expect(c.synced).toBe(false);
    expect(summary(replace(c, [object('a', '1'), object('b', '2')], '5'))).toEqual([
      'added team-a/a (initial)',
      'added team-a/b (initial)',
    ]);
    expect(c.synced).toBe(true);
    const changes = replace(c, [object('b', '7'), object('c', '8')], '9');
    expect(summary(changes)).toEqual(['updated team-a/b', 'added team-a/c', 'deleted team-a/a']);
    expect(changes.find((x) => x.type === 'updated')?.old?.metadata.resourceVersion).toBe('2');
    expect(replace(c, [object('b', '7'), object('c', '8')], '10')).toEqual([]);
  });

  test('a long list comes in slices, and only the last one makes it synced and deletes', () => {
    const c = cache();
    replace(c, [object('gone', '1')], '5');
    const many = Array.from({ length: 600 }, (_, i) => object(`o${i}`, '7'));
    const sizes: [number, boolean][] = [];
    for (const changes of c.replace(many, '9')) sizes.push([changes.length, c.get('team-a/gone') !== undefined]);
    expect(sizes).toEqual([
      [250, true],
      [250, true],
      [101, false],
    ]);
  });

  test('what a live read brought in after the list was taken survives the list', () => {
    const c = cache();
    replace(c, [object('b', '2')], '5');
    c.put(object('a', '8'), 'live');
    c.put(object('b', '9'), 'live');
    expect(summary(replace(c, [object('b', '6')], '7'))).toEqual([]);
    expect(names(c.list())).toEqual(['a', 'b']);
    expect(c.get('team-a/b')?.metadata.resourceVersion).toBe('9');
  });

  test('a live read that the stream has overtaken does not bring a deleted object back', () => {
    const c = cache();
    c.put(object('a', '5'), 'stream');
    c.remove(object('a', '8'));
    expect(c.put(object('a', '5'), 'live')).toBeUndefined();
    expect(c.size).toBe(0);
  });

  test('the stream may bring an older object than a live read did; the newer stays', () => {
    const c = cache();
    c.put(object('a', '5'), 'live');
    expect(c.put(object('a', '4'), 'stream')).toBeUndefined();
    expect(c.get('team-a/a')?.metadata.resourceVersion).toBe('5');
  });
});

describe('own writes', () => {
  const waiting = (c: Cache<KubeObject>) => {
    const settled: string[] = [];
    c.onSettled((w) => settled.push(w));
    return settled;
  };

  const enders: [string, (c: Cache<KubeObject>) => void][] = [
    ['that very version', (c) => c.put(object('a', '10'), 'stream')],
    ['a later version', (c) => c.put(object('a', '11'), 'stream')],
    ['its later deletion', (c) => c.remove(object('a', '12'))],
    ['a bookmark past it', (c) => c.advance('10')],
    ['a list past it', (c) => replace(c, [], '10')],
    ['a live read', (c) => c.settle('team-a/a')],
    ['a live read that finds nothing', (c) => c.forget('team-a/a', 'u-a')],
  ];
  test.each(enders)('are waited for until the cache shows %s', (_name, end) => {
    const c = cache();
    const settled = waiting(c);
    c.put(object('a', '9'), 'stream');
    c.expect('team-a/a', '10');
    expect(c.pending('team-a/a')?.keys).toEqual(['team-a/a']);
    end(c);
    expect(c.pending('team-a/a')).toBeUndefined();
    expect(settled).toEqual(['team-a/a']);
  });

  const others: [string, (c: Cache<KubeObject>) => void][] = [
    ['an older version', (c) => c.put(object('a', '9'), 'stream')],
    ['the deletion of its predecessor', (c) => c.remove(object('a', '9'))],
    ['another object', (c) => c.put(object('b', '11'), 'stream')],
    ['an older bookmark', (c) => c.advance('9')],
  ];
  test.each(others)('are still waited for after %s', (_name, event) => {
    const c = cache();
    const settled = waiting(c);
    c.expect('team-a/a', '10');
    event(c);
    expect(c.pending('team-a/a')).toBeDefined();
    expect(settled).toEqual([]);
  });

  test('are not waited for when the stream was faster than the answer, even for an object deleted since', () => {
    const c = cache();
    c.put(object('a', '10'), 'stream');
    c.expect('team-a/a', '10');
    c.remove(object('a', '12'));
    c.expect('team-a/a', '11');
    expect(c.pending('team-a/a')).toBeUndefined();
  });

  test('of children hold their owner until the last one is seen', () => {
    const c = cache();
    const settled = waiting(c);
    c.expect('team-a/a', '10', 'team-a/owner');
    c.expect('team-a/b', '11', 'team-a/owner');
    expect(c.pending('team-a/a')).toBeUndefined();
    c.put(object('a', '10'), 'stream');
    expect(c.pending('team-a/owner')?.keys).toEqual(['team-a/b']);
    expect(settled).toEqual([]);
    c.put(object('b', '11'), 'stream');
    expect(settled).toEqual(['team-a/owner']);
  });
});

describe('a cache with a stream for each namespace', () => {
  const inNamespace = (namespace: string, name: string, resourceVersion: string): KubeObject => ({
    metadata: { name, namespace, uid: `u-${name}`, resourceVersion },
  });
  const make = () => new Cache<KubeObject>({ namespaces: ['a', 'b'], clock: new FakeClock() });

  test('is filled by one list of each, and a list says nothing about the others', () => {
    const c = make();
    expect(summary([...c.replace([inNamespace('a', 'x', '5')], '10', 'a')].flat())).toEqual(['added a/x (initial)']);
    expect(c.synced).toBe(false);
    expect(summary([...c.replace([inNamespace('b', 'y', '6')], '20', 'b')].flat())).toEqual(['added b/y (initial)']);
    expect(c.synced).toBe(true);
    expect(summary([...c.replace([], '30', 'a')].flat())).toEqual(['deleted a/x']);
    expect(names(c.list())).toEqual(['y']);
  });

  test('an own write is visible when its own stream is past it', () => {
    const c = make();
    for (const namespace of ['a', 'b']) [...c.replace([], '10', namespace)];
    c.expect('a/x', '15');
    c.advance('20', 'b');
    expect(c.pending('a/x')?.keys).toEqual(['a/x']);
    c.advance('20', 'a');
    expect(c.pending('a/x')).toBeUndefined();
    c.expect('b/y', '15');
    expect(c.pending('b/y')).toBeUndefined();
  });

  test('a live read is stale only behind its own stream', () => {
    const c = make();
    for (const namespace of ['a', 'b']) [...c.replace([], namespace === 'a' ? '10' : '50', namespace)];
    expect(c.put(inNamespace('a', 'x', '40'), 'live')?.type).toBe('added');
    expect(c.put(inNamespace('b', 'y', '40'), 'live')).toBeUndefined();
  });

  test('counts what an index holds', () => {
    const c = cache();
    c.put(object('a', '1', { color: 'red' }), 'stream');
    c.put(object('b', '2', { color: 'red' }), 'stream');
    expect([c.count('color', 'red'), c.count('color', 'blue')]).toEqual([2, 0]);
  });
});
