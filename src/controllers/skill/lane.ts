import type { Clock } from '../../base/clock.ts';
import type { Key } from '../../kube/types.ts';

/** Re-evaluations after a change of settings or rules start at most twenty times a second. */
const GAP_MS = 50;

/**
 * The background lane: each key reserves one turn and keeps it, so that every key gets one however many ask, and a key that comes back
 * too early does not lose its place.
 */
export class BackgroundLane {
  readonly #clock: Clock;
  readonly #turns = new Map<Key, number>();
  #next = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds until the turn of `key`; 0: it is now, and used up. */
  enter(key: Key): number {
    const now = this.#clock.monotonic();
    let turn = this.#turns.get(key);
    if (turn === undefined) {
      turn = Math.max(this.#next, now);
      this.#next = turn + GAP_MS;
      this.#turns.set(key, turn);
    }
    if (turn > now) return turn - now;
    this.#turns.delete(key);
    return 0;
  }

  /** The key needs no turn any more. */
  leave(key: Key): void {
    this.#turns.delete(key);
  }
}
