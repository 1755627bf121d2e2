import { setImmediate } from 'node:timers/promises';

/** A computation with pause points: whoever drives it may let other work run at each `yield`. */
export type Steps<T> = Generator<void, T>;

/** Items between two pauses: a few milliseconds of the usual work on one. */
const ITEMS = 128;

/** The items in order, with a pause after every 128. Use it as `yield*`, with the work in `each`. */
export function* paced<T>(items: Iterable<T>, each: (item: T) => void): Steps<void> {
  let left = ITEMS;
  for (const item of items) {
    each(item);
    if (--left > 0) continue;
    left = ITEMS;
    yield;
  }
}

/** Runs a computation to its end and lets the event loop turn at each pause. Rejects with the signal's reason after an abort. */
export async function inSlices<T>(steps: Steps<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    const step = steps.next();
    if (step.done) return step.value;
    await setImmediate();
  }
}

/** The same in one go, for callers that have nothing else to do. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}
