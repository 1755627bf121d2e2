import type { Clock } from '../base/clock.ts';
import type { Key } from '../kube/types.ts';

/** Tries of an act that nobody waits for any more. */
const TRIES = 5;

interface Entry {
  /** Somebody asked since the last act began. */
  again: boolean;
  failures: number;
  cancel: (() => void) | undefined;
}

interface CoalescerOptions {
  clock: Clock;
  /** Between two acts of one key, milliseconds. */
  pauseMs: number;
  act(key: Key): Promise<void>;
  /** An act failed for which the sender already has its answer. */
  failed(key: Key, error: unknown, last: boolean): void;
}

/**
 * Turns many requests for a key into few acts: the first acts at once, what comes during the act or the pause after it becomes one
 * act at the end of the pause. So an act always begins after the last request.
 */
export class Coalescer {
  readonly #options: CoalescerOptions;
  readonly #entries = new Map<Key, Entry>();
  #closed = false;

  constructor(options: CoalescerOptions) {
    this.#options = options;
  }

  /** `acted` after an act of its own, `joined` when one will follow. Rejects when its own act fails. */
  async request(key: Key): Promise<'acted' | 'joined'> {
    const known = this.#entries.get(key);
    if (known) {
      known.again = true;
      return 'joined';
    }
    const entry: Entry = { again: false, failures: 0, cancel: undefined };
    this.#entries.set(key, entry);
    try {
      await this.#options.act(key);
      return 'acted';
    } finally {
      this.#pause(key, entry);
    }
  }

  /** Acts now for every key that waits for the end of its pause; for the end of the process. Never rejects. */
  async flush(): Promise<void> {
    this.#closed = true;
    const waiting = [...this.#entries].filter(([, { again }]) => again);
    for (const { cancel } of this.#entries.values()) cancel?.();
    this.#entries.clear();
    await Promise.all(
      waiting.map(([key]) => this.#options.act(key).catch((error) => this.#options.failed(key, error, true))),
    );
  }

  #pause(key: Key, entry: Entry): void {
    if (this.#closed) return;
    entry.cancel = this.#options.clock.after(this.#options.pauseMs, () => void this.#resume(key, entry));
  }

  async #resume(key: Key, entry: Entry): Promise<void> {
    if (!entry.again) {
      this.#entries.delete(key);
      return;
    }
    entry.again = false;
    try {
      await this.#options.act(key);
      entry.failures = 0;
    } catch (error) {
      entry.failures++;
      const last = entry.failures >= TRIES;
      this.#options.failed(key, error, last);
      entry.again ||= !last;
    }
    this.#pause(key, entry);
  }
}
