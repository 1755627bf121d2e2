import type { Key } from '../kube/types.ts';

/**
 * Locks between the workers that make use of a thing outside the cluster and those that delete such things, in one process.
 * A worker holds a thing from its first look until its status write has returned; the sweep claims a thing, then reads the statuses live,
 * then deletes. Claimed things are not held and held ones not claimed, so whatever a status comes to name is still there.
 * Things are named by anything unique: a package, or a Skill with all that is its own.
 */
export class Pins {
  readonly #holders = new Map<string, number>();
  readonly #held = new Map<Key, Set<string>>();
  readonly #claims = new Map<string, Promise<void>>();
  readonly #remembers: (thing: string) => boolean;
  #touched = new Set<string>();

  /** `remember`: which things to keep for `takeTouched`, which somebody then has to call; default none. */
  constructor(options: { remember?: (thing: string) => boolean } = {}) {
    this.#remembers = options.remember ?? (() => false);
  }

  /** Holds a thing for the worker `owner`, once its deletion has ended should one be under way. Rejects when `signal` aborts. */
  async hold(thing: string, owner: Key, signal: AbortSignal): Promise<void> {
    for (let claim = this.#claims.get(thing); claim; claim = this.#claims.get(thing)) await ended(claim, signal);
    const own = this.#held.get(owner) ?? new Set();
    if (own.has(thing)) return;
    this.#held.set(owner, own.add(thing));
    this.#holders.set(thing, (this.#holders.get(thing) ?? 0) + 1);
    if (this.#remembers(thing)) this.#touched.add(thing);
  }

  /** The worker needs none of its things any more. */
  release(owner: Key): void {
    for (const thing of this.#held.get(owner) ?? []) {
      const left = (this.#holders.get(thing) ?? 1) - 1;
      if (left > 0) this.#holders.set(thing, left);
      else this.#holders.delete(thing);
    }
    this.#held.delete(owner);
  }

  /** Takes a thing for its deletion; undefined: a worker holds it or another claim stands. Disposing gives it back. */
  claim(thing: string): Disposable | undefined {
    if (this.#holders.has(thing) || this.#claims.has(thing)) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#claims.set(thing, promise);
    return {
      [Symbol.dispose]: () => {
        this.#claims.delete(thing);
        resolve();
      },
    };
  }

  /** Whether a worker holds the thing now. */
  isHeld(thing: string): boolean {
    return this.#holders.has(thing);
  }

  /** What of the things to remember was held since the last call, for however short. */
  takeTouched(): ReadonlySet<string> {
    const touched = this.#touched;
    this.#touched = new Set([...this.#holders.keys()].filter(this.#remembers));
    return touched;
  }
}

/** The name under which a Skill is pinned, with all that is its own: images, records, templates. */
export const skillThing = (namespace: string, name: string): string => `skills/${namespace}/${name}`;

async function ended(work: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
