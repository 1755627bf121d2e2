import type { Clock } from '../base/clock.ts';
import { type Backoff, fullJitter } from './backoff.ts';
import { Deque, Heap } from './heap.ts';
import type { Enqueue, Key } from './types.ts';

/** Delay of a key after its nth failure in a row. */
const BACKOFF: Backoff = { baseMs: 1_000, maxMs: 15 * 60_000 };

interface Entry {
  key: Key;
  /** Monotonic milliseconds before which the key is not handed out. */
  runAt: number;
  priority: boolean;
  /** Order of arrival among equals. */
  seq: number;
  place: 'delayed' | 'ready';
  /** Monotonic milliseconds at which it became ready for the first time. */
  readyAt?: number;
}

/** What a queue tells about its keys; durations in milliseconds. */
export interface QueueObserver {
  added(): void;
  taken(waitedMs: number): void;
  done(workedMs: number): void;
  retried(): void;
}

export interface QueueOptions {
  clock: Clock;
  /** Uniform in [0, 1); jitter of the back-off. */
  random?: () => number;
  backoff?: Backoff;
  observer?: QueueObserver;
}

/**
 * Keys waiting to be reconciled. A key is in it at most once: adding again keeps the earlier time and the higher priority.
 * A key that was taken is not handed out again before `done`; added meanwhile, it comes back after that.
 * Priority keys go first; inside a priority it is first ready, first served.
 */
export class WorkQueue implements Enqueue {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #backoff: Backoff;
  readonly #entries = new Map<Key, Entry>();
  readonly #observer: QueueObserver | undefined;
  /** Keys handed out: the priority they were taken with, and when (monotonic milliseconds). */
  readonly #running = new Map<Key, { priority: boolean; since: number }>();
  readonly #failures = new Map<Key, number>();
  readonly #delayed = new Heap<Entry>((a, b) => a.runAt - b.runAt || a.seq - b.seq);
  readonly #ready = { high: new Deque<Entry>(), low: new Deque<Entry>() };
  readonly #takers = new Set<(key: Key) => void>();
  #readyCount = 0;
  #seq = 0;
  #timer: { at: number; cancel: () => void } | undefined;

  constructor(options: QueueOptions) {
    this.#clock = options.clock;
    this.#random = options.random ?? Math.random;
    this.#backoff = options.backoff ?? BACKOFF;
    this.#observer = options.observer;
  }

  /** Keys that could be taken now, for metrics (those being worked on are not among them). */
  get depth(): number {
    return this.#readyCount;
  }

  /** Keys that wait for their time or for their run to end. */
  get waiting(): number {
    return this.#entries.size - this.#readyCount;
  }

  /** Entries in memory, replaced ones that have not surfaced yet included. */
  get held(): number {
    return this.#delayed.size + this.#ready.high.size + this.#ready.low.size;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Ages of the work under way at `now`, in milliseconds. */
  agesOfWork(now: number): { total: number; oldest: number } {
    const ages = Array.from(this.#running.values(), ({ since }) => now - since);
    return { total: ages.reduce((sum, age) => sum + age, 0), oldest: Math.max(0, ...ages) };
  }

  add(key: Key, options: { delayMs?: number; priority?: boolean } = {}): void {
    const runAt = this.#clock.monotonic() + Math.max(0, options.delayMs ?? 0);
    const priority = options.priority ?? false;
    const entry = this.#entries.get(key);
    if (!entry) {
      this.#insert({ key, runAt, priority, seq: this.#seq++, place: 'delayed' });
      return;
    }
    const raised = priority && !entry.priority;
    const sooner = runAt < entry.runAt && entry.place === 'delayed';
    if (!raised && !sooner) return;
    // The old entry stays where it is and is skipped when it surfaces: removing from the middle would be linear.
    if (entry.place === 'ready') this.#readyCount--;
    this.#insert({
      ...entry,
      priority: entry.priority || priority,
      runAt: Math.min(runAt, entry.runAt),
      place: 'delayed',
    });
  }

  /** Adds a taken key again with the priority it was taken with. */
  addAgain(key: Key, delayMs: number): void {
    this.add(key, { delayMs, priority: this.#running.get(key)?.priority ?? false });
  }

  /** Adds a taken key after a failure, delayed by its back-off and not before `atLeastMs`. Returns the delay in milliseconds. */
  addFailed(key: Key, atLeastMs = 0): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    this.#observer?.retried();
    const delayMs = Math.max(atLeastMs, fullJitter(this.#backoff, failures, this.#random()));
    this.addAgain(key, delayMs);
    return delayMs;
  }

  /** Ends a row of failures. */
  forget(key: Key): void {
    this.#failures.delete(key);
  }

  /** Failures in a row of that key. */
  failuresOf(key: Key): number {
    return this.#failures.get(key) ?? 0;
  }

  /** The next key, now or when there is one. Rejects with the signal's reason. Every key taken needs `done`. */
  async take(signal: AbortSignal): Promise<Key> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Key>();
    const give = (key: Key) => {
      signal.removeEventListener('abort', stop);
      resolve(key);
    };
    const stop = () => {
      this.#takers.delete(give);
      reject(signal.reason);
    };
    signal.addEventListener('abort', stop, { once: true });
    this.#takers.add(give);
    this.#dispatch();
    return promise;
  }

  /** The run of a taken key is over; what was added meanwhile becomes takeable. */
  done(key: Key): void {
    const run = this.#running.get(key);
    if (!run) return;
    this.#running.delete(key);
    this.#observer?.done(this.#clock.monotonic() - run.since);
    const entry = this.#entries.get(key);
    if (entry) this.#place(entry);
    this.#dispatch();
  }

  #insert(entry: Entry): void {
    this.#entries.set(entry.key, entry);
    if (this.#running.has(entry.key)) return;
    this.#place(entry);
    this.#dispatch();
  }

  #place(entry: Entry): void {
    if (entry.runAt <= this.#clock.monotonic()) {
      this.#makeReady(entry);
      return;
    }
    this.#delayed.push(entry);
    // Replaced entries would otherwise stay for their whole delay, one per run.
    if (this.#delayed.size > 2 * this.#entries.size + 1024) {
      this.#delayed.retain((e) => this.#entries.get(e.key) === e);
    }
  }

  #makeReady(entry: Entry): void {
    entry.place = 'ready';
    if (entry.readyAt === undefined) {
      entry.readyAt = this.#clock.monotonic();
      this.#observer?.added();
    }
    this.#readyCount++;
    (entry.priority ? this.#ready.high : this.#ready.low).push(entry);
  }

  #dispatch(): void {
    this.#promote();
    for (const give of this.#takers) {
      const entry = this.#next();
      if (!entry) break;
      this.#takers.delete(give);
      this.#entries.delete(entry.key);
      this.#readyCount--;
      const now = this.#clock.monotonic();
      this.#running.set(entry.key, { priority: entry.priority, since: now });
      this.#observer?.taken(now - (entry.readyAt ?? now));
      give(entry.key);
    }
    this.#arm();
  }

  #next(): Entry | undefined {
    for (const lane of [this.#ready.high, this.#ready.low]) {
      for (let entry = lane.shift(); entry; entry = lane.shift()) {
        if (this.#entries.get(entry.key) === entry) return entry;
      }
    }
    return undefined;
  }

  /** Moves what is due from the heap to the lanes. */
  #promote(): void {
    const now = this.#clock.monotonic();
    for (let first = this.#first(); first && first.runAt <= now; first = this.#first()) {
      this.#delayed.pop();
      this.#makeReady(first);
    }
  }

  /** The earliest delayed entry; replaced ones are thrown away on the way. */
  #first(): Entry | undefined {
    for (let first = this.#delayed.peek(); first; first = this.#delayed.peek()) {
      if (this.#entries.get(first.key) === first) return first;
      this.#delayed.pop();
    }
    return undefined;
  }

  /** One timer, for the earliest delayed key. */
  #arm(): void {
    const at = this.#first()?.runAt;
    if (this.#timer && this.#timer.at === at) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (at === undefined) return;
    const fire = () => {
      this.#timer = undefined;
      this.#dispatch();
    };
    // Node fires a delay above 2^31-1 ms at once.
    const delay = Math.min(2 ** 31 - 1, Math.max(0, Math.ceil(at - this.#clock.monotonic())));
    this.#timer = { at, cancel: this.#clock.after(delay, fire) };
  }
}
