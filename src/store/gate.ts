/** Lets at most `slots` calls run at once; the others wait in order and leave at once when their signal aborts. */
export class Gate {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(slots: number) {
    this.#free = slots;
  }

  /** Runs `fn` when a slot is free. Rejects with the signal's reason when it aborts before that. */
  async run<T>(signal: AbortSignal, fn: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#turn(signal);
    try {
      return await fn();
    } finally {
      this.#release();
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#waiting.delete(go);
        reject(signal.reason);
      };
      this.#waiting.add(go);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  #release(): void {
    const next = this.#waiting.values().next().value;
    if (!next) {
      this.#free++;
      return;
    }
    // The slot passes on without becoming free, so nobody overtakes the one who waits.
    this.#waiting.delete(next);
    next();
  }
}
