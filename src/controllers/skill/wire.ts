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
 * The connection that all Skills share, as one switch: once it is down a single key tries it, at most once a second, and the others
 * wait for that one (I17). The first success wakes them all.
 */
export class Wire {
  readonly #clock: Clock;
  readonly #wake: (key: Key) => void;
  readonly #waiting = new Set<Key>();
  #down: { error: PolicyError; prober: Key; triedAt: number } | undefined;

  constructor(clock: Clock, wake: (key: Key) => void) {
    this.#clock = clock;
    this.#wake = wake;
  }

  /** Throws the known failure while the wire is down, unless it is the turn of `key` to try. */
  enter(key: Key): void {
    if (!this.#down) return;
    const now = this.#clock.monotonic();
    const mine = this.#down.prober === key || !this.#waiting.has(this.#down.prober);
    if (mine && now - this.#down.triedAt >= PROBE_MS) {
      this.#down = { ...this.#down, prober: key, triedAt: now };
      this.#waiting.add(key);
      return;
    }
    this.#waiting.add(key);
    const { error } = this.#down;
    const retryAfterMs = this.#down.prober === key ? PROBE_MS : LOOK_MS;
    throw waiting(error.reason, error.message, { retryAfterMs, cause: error });
  }

  /** Runs a call on the wire and learns from its outcome. */
  async run<T>(key: Key, call: () => Promise<T>): Promise<T> {
    try {
      const result = await call();
      this.#up();
      return result;
    } catch (error) {
      if (error instanceof PolicyError && SHARED.has(error.reason)) throw this.#failed(key, error);
      throw error;
    }
  }

  /** The key is gone and will not try again. */
  forget(key: Key): void {
    this.#waiting.delete(key);
  }

  #failed(key: Key, error: PolicyError): PolicyError {
    this.#waiting.add(key);
    const prober = this.#down && this.#waiting.has(this.#down.prober) ? this.#down.prober : key;
    this.#down = { error, prober, triedAt: this.#clock.monotonic() };
    const retryAfterMs = prober === key ? PROBE_MS : LOOK_MS;
    return new PolicyError('Waiting', error.reason, error.message, { retryAfterMs, cause: error });
  }

  #up(): void {
    if (!this.#down) return;
    this.#down = undefined;
    const keys = [...this.#waiting];
    this.#waiting.clear();
    for (const key of keys) this.#wake(key);
  }
}
