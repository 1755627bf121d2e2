import { reaches } from './versions.ts';

interface Expectation {
  resourceVersion: string;
  waiter: string;
  /** Monotonic milliseconds. */
  since: number;
}

/**
 * Own writes that a cache has not shown yet. An expectation is on one object and holds back one waiter (a reconcile key):
 * the object's own key, or its owner's where a controller writes children.
 */
export class Expectations {
  readonly #byKey = new Map<string, Expectation>();
  readonly #byWaiter = new Map<string, Set<string>>();
  readonly #onSettled: (waiter: string) => void;

  /** `onSettled` is called with a waiter whose last open write was seen (or dropped). */
  constructor(onSettled: (waiter: string) => void) {
    this.#onSettled = onSettled;
  }

  /** A later write of the same object replaces the earlier one. */
  expect(key: string, resourceVersion: string, waiter: string, now: number): void {
    const before = this.#byKey.get(key);
    if (before && before.waiter !== waiter) this.#settle(key, before);
    this.#byKey.set(key, { resourceVersion, waiter, since: now });
    const keys = this.#byWaiter.get(waiter);
    if (keys) keys.add(key);
    else this.#byWaiter.set(waiter, new Set([key]));
  }

  /** The stream showed `key` at `resourceVersion`, deleted or not. */
  seen(key: string, resourceVersion: string): void {
    const open = this.#byKey.get(key);
    if (open && reaches(resourceVersion, open.resourceVersion)) this.#settle(key, open);
  }

  /** The stream of the objects that `includes` names is at `resourceVersion`: nothing older is still to come. */
  advanced(resourceVersion: string, includes: (key: string) => boolean): void {
    for (const [key, open] of this.#byKey) {
      if (includes(key) && reaches(resourceVersion, open.resourceVersion)) this.#settle(key, open);
    }
  }

  /** Forgets what is expected of an object; after a live read. */
  drop(key: string): void {
    const open = this.#byKey.get(key);
    if (open) this.#settle(key, open);
  }

  /** Objects whose write `waiter` still waits for, and since when the oldest (monotonic milliseconds). */
  open(waiter: string): { keys: string[]; since: number } | undefined {
    const keys = this.#byWaiter.get(waiter);
    if (!keys) return undefined;
    let since = Number.POSITIVE_INFINITY;
    for (const key of keys) since = Math.min(since, this.#byKey.get(key)?.since ?? since);
    return { keys: [...keys], since };
  }

  #settle(key: string, open: Expectation): void {
    this.#byKey.delete(key);
    const keys = this.#byWaiter.get(open.waiter);
    if (!keys?.delete(key) || keys.size > 0) return;
    this.#byWaiter.delete(open.waiter);
    this.#onSettled(open.waiter);
  }
}
