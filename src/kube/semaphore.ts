/** Lets at most `limit` callers in at once, first come first served. */
export class Semaphore {
  readonly #limit: number;
  #inside = 0;
  readonly #waiting = new Set<() => void>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Callers that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Resolves when there is room; rejects with the signal's reason on abort. Every success needs one `release`. */
  async acquire(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#inside < this.#limit) {
      this.#inside++;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const enter = () => {
      signal.removeEventListener('abort', leave);
      resolve();
    };
    const leave = () => {
      this.#waiting.delete(enter);
      reject(signal.reason);
    };
    this.#waiting.add(enter);
    signal.addEventListener('abort', leave, { once: true });
    await promise;
  }

  /** Makes room; the place goes straight to the longest waiting caller. */
  release(): void {
    const next = this.#waiting.values().next();
    if (next.done) {
      this.#inside--;
      return;
    }
    this.#waiting.delete(next.value);
    next.value();
  }
}
