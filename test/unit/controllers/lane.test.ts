import { expect, test } from 'vitest';
import { BackgroundLane } from '../../../src/controllers/skill/lane.ts';
import { FakeClock } from '../kube/fake-clock.ts';

/** Lets every key come back when it was told to; the times at which each had its turn. */
async function turns(keys: string[], early = 0): Promise<Map<string, number>> {
  const clock = new FakeClock();
  const lane = new BackgroundLane(clock);
  const due = new Map(keys.map((key) => [key, 0]));
  const done = new Map<string, number>();
  for (let step = 0; due.size > 0 && step < 10_000; step++) {
    const [key, at] = [...due].sort(([, a], [, b]) => a - b)[0] as [string, number];
    await clock.advance(Math.max(0, at - clock.monotonic()));
    const wait = lane.enter(key);
    if (wait > 0) due.set(key, clock.monotonic() + Math.max(1, wait - early));
    else {
      due.delete(key);
      done.set(key, clock.monotonic());
    }
  }
  return done;
}

test('every key gets one turn, twenty a second, in the order in which they asked', async () => {
  expect([...(await turns(['a', 'b', 'c', 'd']))]).toEqual([
    ['a', 0],
    ['b', 50],
    ['c', 100],
    ['d', 150],
  ]);
});

test('keys that come back too early keep their place', async () => {
  const done = await turns(
    Array.from({ length: 40 }, (_, i) => `key-${i}`),
    20,
  );
  expect(done.size).toBe(40);
  expect(Math.max(...done.values())).toBe(39 * 50);
});

test('a lane that nobody used for a while starts at once', async () => {
  const clock = new FakeClock();
  const lane = new BackgroundLane(clock);
  expect([lane.enter('a'), lane.enter('b')]).toEqual([0, 50]);
  await clock.advance(10_000);
  expect([lane.enter('c'), lane.enter('b'), lane.enter('d')]).toEqual([0, 0, 50]);
});

test('a key that left asks anew', () => {
  const lane = new BackgroundLane(new FakeClock());
  expect([lane.enter('a'), lane.enter('b')]).toEqual([0, 50]);
  lane.leave('b');
  expect(lane.enter('b')).toBe(100);
});
