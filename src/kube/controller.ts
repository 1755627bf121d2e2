import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../base/clock.ts';
import { withLogFields } from '../base/context.ts';
import { isAbort, messageOf, PolicyError } from '../base/errors.ts';
import { type Logger, silentLogger } from '../base/log.ts';
import { isLeaseLost, KubeError, toPolicyError } from './errors.ts';
import { WorkQueue } from './queue.ts';
import type { Enqueue, Key, Reconcile, ReconcileResult } from './types.ts';

const TIMEOUT_MS = 10 * 60_000;
/** How long a reconcile may take to obey its abort before the worker goes on without it. */
const OBEY_MS = 10_000;
/** Longest wait for the cache to show an own write; then the objects are read live. */
const SETTLE_MS = 5_000;
const WAITING_MS = 60_000;
const GRACE_MS = 15_000;

/** How a reconcile ended. `panic` is an error without a policy: a defect. */
export type Outcome = 'success' | 'Stalled' | 'Waiting' | 'Retry' | 'panic';

/** A cache whose own writes hold a key back, and the live read that ends the wait where the cache is late. */
interface Settles {
  cache: {
    pending(waiter: Key): { keys: Key[]; since: number } | undefined;
    onSettled(listener: (waiter: Key) => void): void;
  };
  refresh(key: Key, signal: AbortSignal): Promise<void>;
}

export interface ControllerOptions {
  name: string;
  workers: number;
  reconcile: Reconcile;
  /** How often a key is looked at when nothing changes, milliseconds: what Stalled and Waiting go by. */
  intervalOf: (key: Key) => number;
  settles?: Settles[];
  queue?: WorkQueue;
  clock?: Clock;
  logger?: Logger;
  reconcileTimeoutMs?: number;
  /** How long `run` waits for reconciles that are under way when it is aborted, milliseconds. */
  graceMs?: number;
  observe?: (outcome: Outcome, seconds: number) => void;
}

/**
 * Workers over a queue of keys. One key is never reconciled twice at once (not even when a run ignores its abort), and not
 * before the caches show its own last write. Errors decide the next look by their policy; nothing ends a worker but the abort.
 */
export class Controller implements Enqueue {
  readonly #options: ControllerOptions;
  readonly #queue: WorkQueue;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Keys that wait for the cache. */
  readonly #parked = new Set<Key>();

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#queue = options.queue ?? new WorkQueue({ clock: this.#clock });
    this.#logger = options.logger ?? silentLogger;
    for (const { cache } of options.settles ?? []) cache.onSettled((waiter) => this.#unpark(waiter));
  }

  /** The queue, for metrics. */
  get queue(): Pick<WorkQueue, 'depth' | 'waiting' | 'running' | 'agesOfWork'> {
    return this.#queue;
  }

  add(key: Key, options?: { delayMs?: number; priority?: boolean }): void {
    this.#queue.add(key, options);
  }

  /** Works until `signal` aborts; reconciles under way are aborted too and waited for, at most the grace. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const begin = () => Array.from({ length: this.#options.workers }, () => this.#work(signal));
    const workers = withLogFields({ controller: this.#options.name }, begin);
    const grace = Promise.withResolvers<void>();
    let cancel: () => void = () => undefined;
    const onAbort = () => {
      cancel = this.#clock.after(this.#options.graceMs ?? GRACE_MS, grace.resolve);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    await Promise.race([Promise.all(workers), grace.promise]);
    cancel();
  }

  async #work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let key: Key;
      try {
        key = await this.#queue.take(signal);
      } catch {
        return;
      }
      const fields = { key, reconcileID: randomUUID() };
      await withLogFields(fields, () => this.#turn(key, signal));
    }
  }

  /** One taken key; returns when the worker is free again, which is after `done` unless the run ignores its abort. */
  async #turn(key: Key, signal: AbortSignal): Promise<void> {
    if (!(await this.#settled(key, signal))) {
      this.#queue.done(key);
      return;
    }
    const abort = new AbortController();
    const started = this.#clock.monotonic();
    const timeoutMs = this.#options.reconcileTimeoutMs ?? TIMEOUT_MS;
    // Made when it is needed: an error with its stack would be the dearest part of a short run.
    const late = () => retryError(`reconcile of ${key} took longer than ${timeoutMs} ms and was stopped`);
    const released = Promise.withResolvers<void>();
    const cancels = [
      this.#clock.after(timeoutMs, () => abort.abort(late())),
      this.#clock.after(timeoutMs + OBEY_MS, () => {
        this.#logger.error('reconcile ignores its abort; its key stays locked and the worker goes on');
        released.resolve();
      }),
    ];
    const stop = () => abort.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const run = this.#attempt(key, abort.signal, signal, started).finally(() => {
      for (const cancel of cancels) cancel();
      signal.removeEventListener('abort', stop);
      this.#queue.done(key);
    });
    await Promise.race([run, released.promise]);
  }

  async #attempt(key: Key, own: AbortSignal, outer: AbortSignal, started: number): Promise<void> {
    let outcome: Outcome = 'success';
    try {
      this.#after(key, await this.#options.reconcile(key, own));
    } catch (error) {
      if (outer.aborted) return;
      const cause = own.aborted && isAbort(error, own) ? own.reason : error;
      outcome = this.#failed(key, cause);
    }
    this.#observe(outcome, (this.#clock.monotonic() - started) / 1000);
  }

  #after(key: Key, result: ReconcileResult): void {
    if (!result.undecided) this.#queue.forget(key);
    if (result.requeueAfterMs !== undefined) this.#queue.add(key, { delayMs: result.requeueAfterMs });
  }

  #failed(key: Key, error: unknown): Outcome {
    const lost = isLeaseLost(error);
    const known = lost || error instanceof PolicyError || error instanceof KubeError;
    const policy = toPolicyError(error);
    const log = { reason: policy.reason, policy: policy.policy };
    const { retryAfterMs } = policy;
    switch (policy.policy) {
      case 'Stalled':
        this.#queue.forget(key);
        this.#queue.add(key, { delayMs: this.#interval(key) });
        this.#logger.info(log, messageOf(policy));
        return 'Stalled';
      case 'Waiting':
        this.#queue.forget(key);
        this.#queue.add(key, { delayMs: retryAfterMs ?? Math.min(WAITING_MS, this.#interval(key)) });
        this.#logger.info(log, messageOf(policy));
        return 'Waiting';
      case 'Retry': {
        const delayMs = Math.round(this.#queue.addFailed(key, retryAfterMs));
        // Every key meets a lost lease; the election says it once.
        if (known) this.#logger[lost ? 'debug' : 'warn']({ ...log, delayMs }, messageOf(policy));
        else this.#logger.error({ ...log, delayMs, err: error }, 'reconcile failed by a defect');
        return known ? 'Retry' : 'panic';
      }
    }
  }

  #interval(key: Key): number {
    try {
      return this.#options.intervalOf(key);
    } catch (error) {
      this.#logger.error({ err: error }, 'intervalOf failed');
      return WAITING_MS;
    }
  }

  #observe(outcome: Outcome, seconds: number): void {
    try {
      this.#options.observe?.(outcome, seconds);
    } catch (error) {
      this.#logger.error({ err: error }, 'observe failed');
    }
  }

  /** False: the key was parked until its own writes are visible. After 5 s the objects are read live instead. */
  async #settled(key: Key, signal: AbortSignal): Promise<boolean> {
    for (const { cache, refresh } of this.#options.settles ?? []) {
      const open = cache.pending(key);
      if (!open) continue;
      const left = SETTLE_MS - (this.#clock.monotonic() - open.since);
      if (left > 0) {
        this.#parked.add(key);
        this.#queue.addAgain(key, left);
        return false;
      }
      // The live read settles the wait, which must not start another run.
      this.#parked.delete(key);
      try {
        for (const late of open.keys) await refresh(late, signal);
      } catch (error) {
        if (!signal.aborted) this.#failed(key, error);
        return false;
      }
    }
    this.#parked.delete(key);
    return true;
  }

  #unpark(waiter: Key): void {
    // No delay: the entry in the queue has its priority and gives up the rest of its own delay.
    if (this.#parked.delete(waiter)) this.#queue.add(waiter);
  }
}

const retryError = (message: string): PolicyError => new PolicyError('Retry', 'InternalError', message);
