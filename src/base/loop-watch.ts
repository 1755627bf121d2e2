import type { Clock } from './clock.ts';

/** How often the event loop is asked to answer. */
const TICK_MS = 1_000;
/** A timer later than this was held up: health probes and lease renewals live with less. */
const LATE_MS = 2_000;
/** Without one timer in time for this long the process no longer does its work. */
const STUCK_MS = 60_000;

/**
 * Whether the event loop still turns: a timer that is due each second and how late it came.
 * One long pause (a stopped process, a machine that slept) is none: only a loop that was late all the time for a minute is stuck.
 */
export class LoopWatch {
  readonly #clock: Clock;
  #inTimeAt: number;
  #cancel: () => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#inTimeAt = clock.monotonic();
  }

  /** False when no timer was in time for a minute. */
  get alive(): boolean {
    return this.#clock.monotonic() - this.#inTimeAt < STUCK_MS;
  }

  start(): this {
    this.#arm();
    return this;
  }

  stop(): void {
    this.#cancel();
  }

  #arm(): void {
    const due = this.#clock.monotonic() + TICK_MS;
    this.#cancel = this.#clock.after(TICK_MS, () => {
      const now = this.#clock.monotonic();
      if (now - due < LATE_MS) this.#inTimeAt = now;
      this.#arm();
    });
  }
}
