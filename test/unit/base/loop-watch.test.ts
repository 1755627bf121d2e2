import { expect, test } from 'vitest';
import { LoopWatch } from '../../../src/base/loop-watch.ts';
import { FakeClock } from '../kube/fake-clock.ts';

test('a loop that turns is alive, one that is always late for a minute is not, and it recovers', async () => {
  const clock = new FakeClock();
  const watch = new LoopWatch(clock).start();
  await clock.advance(600_000);
  expect(watch.alive).toBe(true);
  for (let i = 0; i < 13; i++) {
    // Each timer comes five seconds late.
    clock.freeze(5_000);
    await clock.advance(0);
  }
  expect(watch.alive).toBe(false);
  await clock.advance(3_000);
  expect(watch.alive).toBe(true);
  watch.stop();
  expect(clock.timers).toBe(0);
});

test('a process that was stopped for an hour is alive as soon as it goes on', async () => {
  const clock = new FakeClock();
  const watch = new LoopWatch(clock).start();
  clock.freeze(3_600_000);
  await clock.advance(2_000);
  expect(watch.alive).toBe(true);
  watch.stop();
});
