import { describe, expect, test } from 'vitest';
import { retry, stalled, waiting } from '../../../src/base/errors.ts';
import { createLogger } from '../../../src/base/log.ts';
import { Controller, type ControllerOptions, type Outcome } from '../../../src/kube/controller.ts';
import { KubeError, LeaseLost, toPolicyError } from '../../../src/kube/errors.ts';
import { WorkQueue } from '../../../src/kube/queue.ts';
import { Cache } from '../../../src/kube/store.ts';
import type { KubeObject } from '../../../src/kube/types.ts';
import { FakeClock, settle } from './fake-clock.ts';

function setup(over: Partial<ControllerOptions>) {
  const clock = new FakeClock();
  const stop = new AbortController();
  const outcomes: Outcome[] = [];
  const controller = new Controller({
    name: 'test',
    workers: 2,
    intervalOf: () => 300_000,
    clock,
    queue: new WorkQueue({ clock, random: () => 1 }),
    reconcile: async () => ({}),
    observe: (outcome) => outcomes.push(outcome),
    ...over,
  });
  const ended = controller.run(stop.signal);
  return { clock, stop, controller, outcomes, ended };
}

describe('what an error does', () => {
  const cases: [string, unknown, number, Outcome][] = [
    ['Stalled waits for the interval', stalled('Invalid', 'no'), 300_000, 'Stalled'],
    ['Waiting looks again after a minute', waiting('SecretNotFound', 'no'), 60_000, 'Waiting'],
    ['Waiting obeys the wait asked for', waiting('SecretNotFound', 'no', { retryAfterMs: 7000 }), 7000, 'Waiting'],
    ['Retry backs off', retry('GitTimeout', 'no'), 1000, 'Retry'],
    ['Retry obeys the wait asked for', retry('GitTimeout', 'no', { retryAfterMs: 30_000 }), 30_000, 'Retry'],
    ['a conflict is a Retry', new KubeError(409, 'Conflict', 'no'), 1000, 'Retry'],
    ['a defect is counted as one and retried', new TypeError('undefined is not a function'), 1000, 'panic'],
    ['even something thrown that is no error', null, 1000, 'panic'],
  ];
  test.each(cases)('%s', async (_name, error, delayMs, outcome) => {
    let runs = 0;
    const { clock, controller, outcomes, stop, ended } = setup({
      reconcile: async () => {
        runs++;
        throw error;
      },
    });
    controller.add('a');
    await settle();
    expect([runs, outcomes]).toEqual([1, [outcome]]);
    await clock.advance(delayMs - 1);
    expect(runs).toBe(1);
    await clock.advance(1);
    expect(runs).toBe(2);
    stop.abort();
    await ended;
  });

  test('Waiting never waits longer than the interval', async () => {
    let runs = 0;
    const { clock, controller, stop, ended } = setup({
      intervalOf: () => 10_000,
      reconcile: async () => {
        runs++;
        throw waiting('SecretNotFound', 'no');
      },
    });
    controller.add('a');
    await clock.advance(10_000);
    expect(runs).toBe(2);
    stop.abort();
    await ended;
  });

  test('success ends the back-off and may ask for the next look', async () => {
    const starts: number[] = [];
    const { clock, controller, stop, ended } = setup({
      reconcile: async () => {
        starts.push(clock.now());
        if (starts.length <= 2 || starts.length === 4) throw retry('GitTimeout', 'no');
        return { requeueAfterMs: 5000 };
      },
    });
    controller.add('a');
    await clock.advance(9000);
    expect(starts).toEqual([0, 1000, 3000, 8000, 9000]);
    stop.abort();
    await ended;
  });

  test('an intervalOf or observe that throws does not end the worker', async () => {
    let runs = 0;
    const boom = () => {
      throw new Error('boom');
    };
    const { clock, controller, stop, ended } = setup({
      intervalOf: boom,
      observe: boom,
      reconcile: async () => {
        runs++;
        throw stalled('Invalid', 'no');
      },
    });
    controller.add('a');
    await clock.advance(60_000);
    expect(runs).toBe(2);
    stop.abort();
    await ended;
  });
});

describe('workers', () => {
  test('run different keys side by side and one key never twice', async () => {
    const running = new Map<string, number>();
    let most = 0;
    const gates: (() => void)[] = [];
    const { controller, stop, ended } = setup({
      workers: 3,
      reconcile: async (key) => {
        running.set(key, (running.get(key) ?? 0) + 1);
        expect(running.get(key)).toBe(1);
        most = Math.max(most, [...running.values()].filter((n) => n > 0).length);
        await new Promise<void>((resolve) => gates.push(resolve));
        running.set(key, 0);
        return {};
      },
    });
    for (const key of ['a', 'b', 'a', 'c', 'a']) controller.add(key);
    await settle();
    controller.add('a');
    await settle();
    expect(most).toBe(3);
    expect(gates.length).toBe(3);
    for (const open of gates.splice(0)) open();
    await settle();
    expect(gates.length).toBe(1);
    for (const open of gates) open();
    stop.abort();
    await ended;
  });

  test('a reconcile that takes too long is aborted and retried', async () => {
    let aborted: unknown;
    let runs = 0;
    const { clock, controller, outcomes, stop, ended } = setup({
      reconcileTimeoutMs: 1000,
      reconcile: async (_key, signal) => {
        if (++runs > 1) return {};
        await clock.sleep(60_000, signal).catch((error) => {
          aborted = error;
          throw error;
        });
        return {};
      },
    });
    controller.add('a');
    await clock.advance(2000);
    expect(aborted).toMatchObject({ message: 'reconcile of a took longer than 1000 ms and was stopped' });
    expect([runs, outcomes]).toEqual([2, ['Retry', 'success']]);
    stop.abort();
    await ended;
  });

  test('one that ignores its abort keeps its key locked but not the worker', async () => {
    const runs: string[] = [];
    const gate = Promise.withResolvers<void>();
    const { clock, controller, stop, ended } = setup({
      workers: 1,
      reconcileTimeoutMs: 1000,
      reconcile: async (key) => {
        runs.push(key);
        if (key === 'deaf' && runs.length === 1) await gate.promise;
        return {};
      },
    });
    controller.add('deaf');
    await settle();
    controller.add('deaf');
    controller.add('b');
    await clock.advance(11_000);
    expect(runs).toEqual(['deaf', 'b']);
    gate.resolve();
    await settle();
    expect(runs).toEqual(['deaf', 'b', 'deaf']);
    stop.abort();
    await ended;
  });

  test('shutdown aborts what runs, waits for it, and starts nothing more', async () => {
    const log: string[] = [];
    const { clock, controller, outcomes, stop, ended } = setup({
      workers: 1,
      reconcile: async (key, signal) => {
        log.push(`start ${key}`);
        await clock.sleep(60_000, signal).catch(() => undefined);
        await settle();
        log.push(`end ${key}`);
        return {};
      },
    });
    controller.add('a');
    controller.add('b');
    await settle();
    stop.abort(new Error('SIGTERM'));
    await ended;
    expect(log).toEqual(['start a', 'end a']);
    expect(outcomes).toEqual(['success']);
  });

  test('but waits no longer than the grace', async () => {
    const { clock, controller, stop, ended } = setup({ graceMs: 3000, reconcile: () => new Promise(() => undefined) });
    controller.add('a');
    await settle();
    stop.abort();
    let over = false;
    void ended.then(() => {
      over = true;
    });
    await clock.advance(2999);
    expect(over).toBe(false);
    await clock.advance(1);
    expect(over).toBe(true);
  });
});

describe('own writes', () => {
  const object = (resourceVersion: string): KubeObject => ({
    metadata: { name: 'a', namespace: 'n', resourceVersion },
  });

  function withCache() {
    const clock = new FakeClock();
    const cache = new Cache<KubeObject>({ clock });
    const seen: (string | undefined)[] = [];
    const reads: string[] = [];
    let failing = false;
    const controller = new Controller({
      name: 'test',
      workers: 2,
      intervalOf: () => 300_000,
      clock,
      queue: new WorkQueue({ clock, random: () => 1 }),
      settles: [
        {
          cache,
          refresh: async (key) => {
            reads.push(key);
            if (failing) throw new KubeError(500, 'InternalError', 'down');
            cache.put(object('20'), 'live');
            cache.settle(key);
          },
        },
      ],
      reconcile: async () => {
        seen.push(cache.get('n/a')?.metadata.resourceVersion);
        if (seen.length === 1) cache.expect('n/a', '20');
        return {};
      },
    });
    cache.put(object('10'), 'stream');
    const stop = new AbortController();
    const ended = controller.run(stop.signal);
    const fail = (on: boolean) => {
      failing = on;
    };
    const end = () => {
      stop.abort();
      return ended;
    };
    return { clock, cache, controller, seen, reads, fail, end };
  }

  test('a key waits until the cache shows its own last write, and then goes at once', async () => {
    const { clock, cache, controller, seen, reads, end } = withCache();
    controller.add('n/a');
    await settle();
    controller.add('n/a');
    await clock.advance(4000);
    expect(seen).toEqual(['10']);
    cache.put(object('20'), 'stream');
    await settle();
    expect(seen).toEqual(['10', '20']);
    expect(reads).toEqual([]);
    await clock.advance(10_000);
    expect(seen.length).toBe(2);
    await end();
  });

  test('a write that nobody waits for starts nothing when it becomes visible', async () => {
    const { clock, cache, controller, seen, end } = withCache();
    controller.add('n/a');
    await settle();
    cache.put(object('20'), 'stream');
    await clock.advance(10_000);
    expect(seen).toEqual(['10']);
    await end();
  });

  test('after five seconds the object is read live', async () => {
    const { clock, controller, seen, reads, end } = withCache();
    controller.add('n/a');
    await settle();
    controller.add('n/a');
    await clock.advance(4999);
    expect(reads).toEqual([]);
    await clock.advance(1);
    expect(reads).toEqual(['n/a']);
    expect(seen).toEqual(['10', '20']);
    await end();
  });

  test('a live read that fails is a Retry, never a pass on old data', async () => {
    const { clock, controller, seen, reads, fail, end } = withCache();
    fail(true);
    controller.add('n/a');
    await settle();
    controller.add('n/a');
    await clock.advance(5500);
    expect([seen, reads]).toEqual([['10'], ['n/a']]);
    fail(false);
    await clock.advance(500);
    expect(seen).toEqual(['10', '20']);
    await end();
  });
});

describe('the log of a reconcile', () => {
  function logged() {
    const lines: Record<string, unknown>[] = [];
    const { logger } = createLogger('trace', { write: (line) => lines.push(JSON.parse(line)) });
    return { lines, logger };
  }

  test('carries controller, key and an id of its own in every line, however deep', async () => {
    const { lines, logger } = logged();
    const other = logger.child({ mirror: 'm' });
    const { controller, stop, ended } = setup({
      logger,
      reconcile: async (key) => {
        await settle();
        other.info('deep down');
        if (key === 'ns/b') throw retry('GitTimeout', 'slow');
        return {};
      },
    });
    for (const key of ['ns/a', 'ns/b']) controller.add(key);
    await settle();
    await settle();
    stop.abort();
    await ended;
    const of = (key: string) => lines.filter((line) => line.key === key);
    expect(of('ns/a').map(({ msg, controller: name, mirror }) => [msg, name, mirror])).toEqual([
      ['deep down', 'test', 'm'],
    ]);
    expect(of('ns/b').map(({ msg, controller: name }) => [msg, name])).toEqual([
      ['deep down', 'test'],
      ['slow', 'test'],
    ]);
    const ids = lines.map(({ reconcileID }) => reconcileID);
    expect(ids.every((id) => typeof id === 'string' && id.length === 36)).toBe(true);
    expect(new Set(ids).size).toBe(2);
  });

  test('says nothing aloud about a lost lease, which ends the process', async () => {
    const { lines, logger } = logged();
    const lost = new LeaseLost('not the leader (any more)');
    const { controller, outcomes, stop, ended } = setup({
      logger,
      reconcile: async (key) => {
        throw key === 'a' ? lost : toPolicyError(lost);
      },
    });
    for (const key of ['a', 'b']) controller.add(key);
    await settle();
    stop.abort();
    await ended;
    expect(outcomes).toEqual(['Retry', 'Retry']);
    expect(lines.map(({ level }) => level)).toEqual(['debug', 'debug']);
  });
});
