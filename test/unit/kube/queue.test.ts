import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WorkQueue } from '../../../src/kube/queue.ts';
import { FakeClock, settle } from './fake-clock.ts';

const signal = new AbortController().signal;

function setup() {
  const clock = new FakeClock();
  return { clock, queue: new WorkQueue({ clock, random: () => 1 }) };
}

/** What could be taken right now, without waiting. */
async function drain(queue: WorkQueue): Promise<string[]> {
  const keys: string[] = [];
  for (;;) {
    const stop = new AbortController();
    const taken = queue.take(stop.signal).then(
      (key) => keys.push(key),
      () => undefined,
    );
    const before = keys.length;
    await Promise.race([taken, settle()]);
    stop.abort();
    await taken;
    if (keys.length === before) return keys;
  }
}

describe('the work queue', () => {
  test('hands keys out in the order they came, each once', async () => {
    const { queue } = setup();
    for (const key of ['a', 'b', 'a', 'c', 'b']) queue.add(key);
    expect(queue.depth).toBe(3);
    expect(await drain(queue)).toEqual(['a', 'b', 'c']);
  });

  test('puts priority keys first and raises a key that is added again with priority', async () => {
    const { queue } = setup();
    for (const key of ['a', 'b', 'c']) queue.add(key);
    queue.add('d', { priority: true });
    queue.add('c', { priority: true });
    queue.add('c');
    expect(queue.depth).toBe(4);
    expect(await drain(queue)).toEqual(['d', 'c', 'a', 'b']);
  });

  test('holds a delayed key back, and the earlier time wins in both directions', async () => {
    const { clock, queue } = setup();
    queue.add('a', { delayMs: 1000 });
    queue.add('a', { delayMs: 300 });
    queue.add('a', { delayMs: 2000 });
    queue.add('b', { delayMs: 500 });
    expect(queue.waiting).toBe(2);
    await clock.advance(299);
    expect(await drain(queue)).toEqual([]);
    await clock.advance(1);
    expect(await drain(queue)).toEqual(['a']);
    await clock.advance(200);
    expect(await drain(queue)).toEqual(['b']);
    await clock.advance(5000);
    expect(await drain(queue)).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  test('never hands out a key that is being worked on; added meanwhile it comes back after done', async () => {
    const { clock, queue } = setup();
    queue.add('a');
    expect(await drain(queue)).toEqual(['a']);
    queue.add('a', { delayMs: 100 });
    queue.add('a');
    expect(await drain(queue)).toEqual([]);
    queue.done('a');
    expect(await drain(queue)).toEqual(['a']);
    queue.done('a');
    await clock.advance(1000);
    expect(await drain(queue)).toEqual([]);
  });

  test('keeps the delay of a key that was added while it ran', async () => {
    const { clock, queue } = setup();
    queue.add('a');
    await drain(queue);
    queue.add('a', { delayMs: 100 });
    queue.done('a');
    expect(await drain(queue)).toEqual([]);
    await clock.advance(100);
    expect(await drain(queue)).toEqual(['a']);
  });

  test('wakes a waiting taker', async () => {
    const { clock, queue } = setup();
    const first = queue.take(signal);
    const second = queue.take(signal);
    queue.add('a', { delayMs: 50 });
    queue.add('b');
    expect(await first).toBe('b');
    await clock.advance(50);
    expect(await second).toBe('a');
  });

  test('an aborted taker gets the reason and no key is lost with it', async () => {
    const { queue } = setup();
    const stop = new AbortController();
    const taken = queue.take(stop.signal);
    stop.abort(new Error('going down'));
    await expect(taken).rejects.toThrow('going down');
    queue.add('a');
    expect(await drain(queue)).toEqual(['a']);
  });

  test('backs off from one second to fifteen minutes, obeys a longer wait and forgets on success', async () => {
    const { queue } = setup();
    const delays = Array.from({ length: 12 }, () => queue.addFailed('a'));
    expect(delays).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900].map((s) => s * 1000));
    expect(queue.failuresOf('a')).toBe(12);
    queue.forget('a');
    expect(queue.addFailed('a')).toBe(1000);
    expect(queue.addFailed('b', 45_000)).toBe(45_000);
  });

  test('a failed priority key stays one', async () => {
    const { clock, queue } = setup();
    queue.add('a', { priority: true });
    await drain(queue);
    queue.addFailed('a');
    queue.done('a');
    queue.add('b', { delayMs: 999 });
    await clock.advance(1000);
    expect(await drain(queue)).toEqual(['a', 'b']);
  });

  test('does not keep what was replaced: a key re-added twenty thousand times costs a bounded number of entries', async () => {
    const { queue } = setup();
    for (let i = 0; i < 20_000; i++) {
      queue.add('a', { delayMs: 3_600_000 });
      queue.add('a');
      const key = await queue.take(signal);
      queue.add(key, { delayMs: 3_600_000 });
      queue.done(key);
    }
    expect(queue.waiting + queue.depth).toBe(1);
    expect(queue.held).toBeLessThan(2000);
  });
});

/** The plainest queue with the same rules, for comparison. */
class Model {
  now = 0;
  seq = 0;
  readonly waiting = new Map<string, { runAt: number; priority: boolean }>();
  readonly running = new Set<string>();
}

type Command = fc.AsyncCommand<Model, { clock: FakeClock; queue: WorkQueue }>;

const key = fc.constantFrom('a', 'b', 'c', 'd');

const add = fc.record({ key, delayMs: fc.constantFrom(0, 10, 50), priority: fc.boolean() }).map(
  (input): Command => ({
    check: () => true,
    async run(model, { queue }) {
      const runAt = model.now + input.delayMs;
      const old = model.waiting.get(input.key);
      model.waiting.set(input.key, {
        runAt: Math.min(runAt, old?.runAt ?? runAt),
        priority: input.priority || (old?.priority ?? false),
      });
      queue.add(input.key, input);
    },
    toString: () => `add(${JSON.stringify(input)})`,
  }),
);

const pass = fc.constantFrom(1, 10, 60).map(
  (ms): Command => ({
    check: () => true,
    async run(model, { clock }) {
      model.now += ms;
      await clock.advance(ms);
    },
    toString: () => `pass(${ms})`,
  }),
);

const take = fc.constant<Command>({
  check: (model) => takeable(model).length > 0,
  async run(model, { queue }) {
    const taken = await queue.take(signal);
    const candidates = takeable(model);
    const high = candidates.filter(([, e]) => e.priority);
    expect((high.length > 0 ? high : candidates).map(([k]) => k)).toContain(taken);
    model.waiting.delete(taken);
    model.running.add(taken);
  },
  toString: () => 'take',
});

const done = key.map(
  (k): Command => ({
    check: (model) => model.running.has(k),
    async run(model, { queue }) {
      model.running.delete(k);
      queue.done(k);
    },
    toString: () => `done(${k})`,
  }),
);

const takeable = (model: Model) => [...model.waiting].filter(([k, e]) => e.runAt <= model.now && !model.running.has(k));

test('any sequence of add, pass, take and done behaves like the model', async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands([add, pass, take, done], { size: '+1' }), async (commands) => {
      await fc.asyncModelRun(() => {
        const { clock, queue } = setup();
        return { model: new Model(), real: { clock, queue } };
      }, commands);
    }),
    { numRuns: 150 },
  );
});
