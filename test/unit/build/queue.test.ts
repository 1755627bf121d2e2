import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { planQueue, type QueueInput, type WaitingBuild } from '../../../src/build/queue.ts';

const build = (key: string, since = 0): WaitingBuild => ({ key, namespace: key.split('/')[0] as string, since });
const running = (...keys: string[]) => keys.map((key) => build(key));
const plan = (input: Partial<QueueInput>) =>
  planQueue({ waiting: [], running: [], lastStart: new Map(), limits: { total: 3, perNamespace: 2 }, ...input });

describe('planQueue', () => {
  test.each<[string, Partial<QueueInput>, string[]]>([
    ['nothing when nothing waits', {}, []],
    ['the longest waiting of a namespace first', { waiting: [build('a/1', 9), build('a/2', 3)] }, ['a/2', 'a/1']],
    ['no more than a namespace may', { waiting: [build('a/1'), build('a/2'), build('a/3')] }, ['a/1', 'a/2']],
    [
      'no more than the installation may',
      { waiting: [build('a/1'), build('b/1'), build('c/1'), build('d/1')] },
      ['a/1', 'b/1', 'c/1'],
    ],
    [
      'one of each namespace before a second of one',
      { waiting: [build('a/1', 1), build('a/2', 2), build('b/1', 8), build('c/1', 9)] },
      ['a/1', 'b/1', 'c/1'],
    ],
    [
      'nothing of a namespace at its limit, but others',
      { waiting: [build('a/3', 1), build('b/1', 9)], running: running('a/1', 'a/2') },
      ['b/1'],
    ],
    ['nothing when all slots are taken', { waiting: [build('c/1')], running: running('a/1', 'a/2', 'b/1') }, []],
    ['nothing twice', { waiting: [build('a/1')], running: running('a/1') }, []],
    [
      'the namespace that started longest ago',
      {
        waiting: [build('a/1', 1), build('b/1', 9)],
        lastStart: new Map([
          ['a', 100],
          ['b', 50],
        ]),
        limits: { total: 1, perNamespace: 1 },
      },
      ['b/1'],
    ],
    [
      'a namespace that never started before one that did',
      {
        waiting: [build('a/1', 1), build('z/1', 9)],
        lastStart: new Map([['a', 1]]),
        limits: { total: 1, perNamespace: 1 },
      },
      ['z/1'],
    ],
    [
      'one at a time at least, whatever the limits say',
      { waiting: [build('a/1')], limits: { total: 0, perNamespace: 0 } },
      ['a/1'],
    ],
  ])('starts %s', (_name, input, expected) => {
    expect(plan(input).start).toEqual(expected);
  });

  test('tells the others where they stand and which limit holds them', () => {
    const { waiting } = plan({
      waiting: [build('a/3', 1), build('b/1', 2), build('c/1', 3)],
      running: running('a/1', 'a/2', 'd/1'),
    });
    expect(Object.fromEntries(waiting)).toMatchInlineSnapshot(`
      {
        "a/3": {
          "message": "waits for a build slot, place 1 of 3: namespace a builds 2 images, its limit is 2; it starts by itself",
          "position": 1,
        },
        "b/1": {
          "message": "waits for a build slot, place 2 of 3: 3 images are being built, the limit is 3; it starts by itself",
          "position": 2,
        },
        "c/1": {
          "message": "waits for a build slot, place 3 of 3: 3 images are being built, the limit is 3; it starts by itself",
          "position": 3,
        },
      }
    `);
  });

  const key = fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.nat(40)).map(([namespace, n]) => `${namespace}/${n}`);
  const queue = fc.record({
    waiting: fc
      .uniqueArray(fc.tuple(key, fc.nat(1000)), { selector: ([k]) => k, maxLength: 60 })
      .map((list) => list.map(([k, since]) => build(k, since))),
    running: fc.uniqueArray(key, { maxLength: 8 }).map((keys) => running(...keys)),
    limits: fc.record({ total: fc.integer({ min: 1, max: 9 }), perNamespace: fc.integer({ min: 1, max: 4 }) }),
  });

  test('never exceeds a limit by what it starts, and leaves no slot free that somebody could use', () => {
    fc.assert(
      fc.property(queue, (input) => {
        const { start } = plan(input);
        const all = [...input.running.map((one) => one.key), ...start];
        expect(new Set(all).size).toBe(all.length);
        const busy = (namespace: string) => all.filter((one) => one.startsWith(`${namespace}/`)).length;
        if (start.length > 0)
          expect(all.length).toBeLessThanOrEqual(Math.max(input.limits.total, input.running.length));
        const left = input.waiting.filter((one) => !all.includes(one.key));
        const could = left.filter((one) => busy(one.namespace) < input.limits.perNamespace);
        expect(all.length < input.limits.total ? could : []).toEqual([]);
      }),
    );
  });

  test('lets everybody have a turn: with one slot, nobody waits for more than a round of the other namespaces', () => {
    fc.assert(
      fc.property(queue, ({ waiting }) => {
        const lastStart = new Map<string, number>();
        const order: string[] = [];
        let left = waiting;
        for (let turn = 0; left.length > 0; turn++) {
          const [next] = plan({ waiting: left, lastStart, limits: { total: 1, perNamespace: 1 } }).start;
          const namespace = (next as string).split('/')[0] as string;
          const present = new Set(left.map((one) => one.namespace)).size;
          expect(order.slice(Math.max(order.length - present + 1, 0))).not.toContain(namespace);
          order.push(namespace);
          lastStart.set(namespace, turn);
          left = left.filter((one) => one.key !== next);
        }
        expect(order).toHaveLength(waiting.length);
      }),
    );
  });
});
