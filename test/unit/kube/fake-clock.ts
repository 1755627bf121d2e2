import type { Clock } from '../../../src/base/clock.ts';

interface Timer {
  at: number;
  fn: () => void;
}

/** A clock that stands still until `advance`; both clocks start at 0 and move together. */
export class FakeClock implements Clock {
  #now = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  get timers(): number {
    return this.#timers.size;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    if (signal.aborted) reject(signal.reason);
    const cancel = this.after(ms, resolve);
    signal.addEventListener('abort', () => {
      cancel();
      reject(signal.reason);
    });
    return promise;
  }

  after(ms: number, fn: () => void): () => void {
    const timer = { at: this.#now + ms, fn };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Lets `ms` pass without anybody noticing, as a stopped process sees it: timers fire late, at the next `advance`. */
  freeze(ms: number): void {
    this.#now += ms;
  }

  /** Moves on by `ms`, firing timers in order and letting promises settle after each. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (let next = this.#due(end); next; next = this.#due(end)) {
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.fn();
      await settle();
    }
    this.#now = end;
    await settle();
  }

  #due(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) if (timer.at <= end && (!first || timer.at < first.at)) first = timer;
    return first;
  }
}

/** Lets everything that is ready to go on do so. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}
