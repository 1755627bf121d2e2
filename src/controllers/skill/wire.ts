import type { Clock } from '../../base/clock.ts';
import { PolicyError, waiting } from '../../base/errors.ts';
import type { Reason } from '../../base/reasons.ts';
import type { Key } from '../../kube/types.ts';

/** Failures that concern the store as a whole, not one package. */
const SHARED: ReadonlySet<Reason> = new Set([
  'StoreUnavailable',
  'StoreTimeout',
  'StoreAccessDenied',
  'StoreBucketNotFound',
  'StoreClockSkew',
  'StoreConfigInvalid',
]);
/** At most one key per this time tries a wire that is down. */
const PROBE_MS = 1_000;
/** When the others look again, should nobody wake them. */
const LOOK_MS = 60_000;

/**
 * The connection that all Skills share, as one switch: once it is down one key at a time tries it, at most once a second, and the
 * others wait (I17). The first success wakes them all. A key that tried comes back after a second; should it vanish, the next one
 * that looks takes its place.
 */
export class Wire {
  readonly #clock: Clock;
  readonly #wake: (key: Key) => void;
  readonly #waiting = new Set<Key>();
  #down: { error: PolicyError; triedAt: number } | undefined;

  constructor(clock: Clock, wake: (key: Key) => void) {
    this.#clock = clock;
    this.#wake = wake;
  }

  /** Throws the known failure while the wire is down, unless it is time for a try: then `key` is the one that makes it. */
  enter(key: Key): void {
    if (!this.#down) return;
    const now = this.#clock.monotonic();
    this.#waiting.add(key);
    if (now - this.#down.triedAt < PROBE_MS) throw waitLike(this.#down.error, LOOK_MS);
    this.#down.triedAt = now;
  }

  /** Runs a call on the wire and learns from its outcome. */
  async run<T>(key: Key, call: () => Promise<T>): Promise<T> {
    try {
      const result = await call();
      this.#up();
      return result;
    } catch (error) {
      if (!(error instanceof PolicyError && SHARED.has(error.reason))) throw error;
      this.#waiting.add(key);
      this.#down = { error, triedAt: this.#clock.monotonic() };
      // Whoever tried comes back when the next try is due; of several only the first finds it due then, the others look a minute later.
      throw waitLike(error, PROBE_MS);
    }
  }

  /** The key is gone and will not try again. */
  forget(key: Key): void {
    this.#waiting.delete(key);
  }

  #up(): void {
    if (!this.#down) return;
    this.#down = undefined;
    const keys = [...this.#waiting];
    this.#waiting.clear();
    for (const key of keys) this.#wake(key);
  }
}

const waitLike = (error: PolicyError, retryAfterMs: number): PolicyError =>
  waiting(error.reason, error.message, { retryAfterMs, cause: error });
