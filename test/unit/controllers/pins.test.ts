import { describe, expect, test } from 'vitest';
import { Pins } from '../../../src/controllers/pins.ts';
import { settle } from '../kube/fake-clock.ts';

const signal = new AbortController().signal;

/** Whether the promise is still pending once everything that can go on has gone on. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let pending = true;
  void promise.then(
    () => (pending = false),
    () => (pending = false),
  );
  await settle();
  return pending;
}

describe('pins', () => {
  test('what a worker holds cannot be claimed, whoever else let go of it', async () => {
    const pins = new Pins();
    await pins.hold('a', 'worker 1', signal);
    await pins.hold('a', 'worker 2', signal);
    // Twice by the same worker is once.
    await pins.hold('a', 'worker 2', signal);
    pins.release('worker 1');
    expect([pins.isHeld('a'), pins.claim('a')]).toEqual([true, undefined]);
    pins.release('worker 2');
    expect(pins.isHeld('a')).toBe(false);
    expect(pins.claim('a')).toBeDefined();
  });

  test('a claim is one at a time, and other things are free meanwhile', () => {
    const pins = new Pins();
    const claim = pins.claim('a');
    expect(pins.claim('a')).toBeUndefined();
    expect(pins.claim('b')).toBeDefined();
    claim?.[Symbol.dispose]();
    expect(pins.claim('a')).toBeDefined();
  });

  test('a worker waits until the claim has ended, through the next one too', async () => {
    const pins = new Pins();
    const first = pins.claim('a');
    const held = pins.hold('a', 'worker', signal);
    expect(await isPending(held)).toBe(true);
    first?.[Symbol.dispose]();
    const second = pins.claim('a');
    expect(await isPending(held)).toBe(true);
    second?.[Symbol.dispose]();
    await held;
    expect(pins.claim('a')).toBeUndefined();
  });

  test('a worker that is aborted stops waiting and holds nothing', async () => {
    const pins = new Pins();
    const claim = pins.claim('a');
    const abort = new AbortController();
    const held = pins.hold('a', 'worker', abort.signal);
    abort.abort(new Error('the lease is lost'));
    await expect(held).rejects.toThrow('the lease is lost');
    claim?.[Symbol.dispose]();
    expect(pins.isHeld('a')).toBe(false);
  });

  test('a worker lets go of all its things at once', async () => {
    const pins = new Pins();
    await pins.hold('a', 'worker', signal);
    await pins.hold('b', 'worker', signal);
    pins.release('worker');
    pins.release('worker');
    expect([pins.isHeld('a'), pins.isHeld('b')]).toEqual([false, false]);
  });

  test('what was held since the last look is remembered, what is still held for the next look too', async () => {
    const pins = new Pins({ remember: (thing) => thing.startsWith('packages/') });
    await pins.hold('packages/x', 'worker', signal);
    await pins.hold('skills/x', 'worker', signal);
    expect([...pins.takeTouched()]).toEqual(['packages/x']);
    pins.release('worker');
    expect([...pins.takeTouched()]).toEqual(['packages/x']);
    expect([...pins.takeTouched()]).toEqual([]);
  });

  test('nothing is remembered where nobody asks', async () => {
    const pins = new Pins();
    await pins.hold('packages/x', 'worker', signal);
    expect([...pins.takeTouched()]).toEqual([]);
  });
});
