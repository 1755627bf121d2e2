import { setImmediate } from 'node:timers/promises';
import { type Clock, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { type Logger, silentLogger } from '../base/log.ts';
import type { WatchEvent } from './answers.ts';
import { KubeError } from './errors.ts';
import { PAGE } from './pages.ts';
import { type ReflectorState, START, step } from './reflector-state.ts';
import type { KubeClient } from './rest.ts';
import type { Scope } from './scope.ts';
import type { Cache, Change } from './store.ts';
import { type Key, type KubeObject, type Resource, splitKey } from './types.ts';

const WATCH_SECONDS = 290;
const MARGIN_MS = 5_000;
/** The first page is short, since nobody knows how large the objects are. */
const PROBE = 100;
/** Parsing more than this at once would hold up the event loop for over 20 ms. */
const PAGE_BYTES = 1024 * 1024;

export interface ReflectorOptions<T extends KubeObject> {
  client: Pick<KubeClient, 'listPage' | 'watch' | 'get'>;
  resource: Resource;
  scope?: Scope;
  cache: Cache<T>;
  /** Changes an object before it enters the cache (drop or hash what is large); may change it in place. */
  trim?: (object: T) => T;
  /** Called for every change, in order, synchronously; what it throws is logged. It should only add keys to queues. */
  onChange: (change: Change<T>) => void;
  logger?: Logger;
  clock?: Clock;
  random?: () => number;
  /** Length of a watch in seconds, 290 by default: below the five minutes of common load balancers. */
  watchSeconds?: number;
  /** How long an open stream may outlive its watch, milliseconds. */
  marginMs?: number;
}

/**
 * Keeps a cache equal to the API server: list in pages, then watch with bookmarks, for ever.
 * Every failure backs off and goes on from the last version seen; 410 lists again, and the new list replaces the cache in one
 * step whose difference, deletions included, goes to `onChange`. Only an abort ends it.
 */
export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #scope: Scope;
  readonly #synced = Promise.withResolvers<void>();
  #lastEvent: number;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#scope = options.scope ?? {};
    this.#logger = (options.logger ?? silentLogger).child({ reflector: options.resource.plural });
    this.#lastEvent = this.#clock.monotonic();
  }

  /** Milliseconds since the server last said anything (an event, a bookmark, a page, a clean end of a watch). */
  get lastEventAgeMs(): number {
    return this.#clock.monotonic() - this.#lastEvent;
  }

  /** False when the server has been silent for two whole watches; for the liveness probe. */
  get alive(): boolean {
    return this.lastEventAgeMs < 2 * (this.#watchMs + this.#marginMs);
  }

  /** Resolves when the first list is in the cache; rejects with the signal's reason. */
  async whenSynced(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, reject } = Promise.withResolvers<never>();
    const stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    try {
      await Promise.race([this.#synced.promise, promise]);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /** Runs until `signal` aborts, then resolves. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    let state: ReflectorState = START;
    while (!signal.aborted) {
      try {
        if (state.waitMs > 0) await this.#clock.sleep(state.waitMs, signal);
        state = state.phase === 'list' ? await this.#list(state, signal) : await this.#watch(state, signal);
      } catch (error) {
        if (signal.aborted) return;
        // Only a defect gets here; it must not end the watch of a whole resource.
        this.#logger.error({ err: error }, 'reflector failed; listing again');
        state = step(state, { type: 'list-failed' }, this.#random());
      }
    }
  }

  /** Reads one object live into the cache, and ends the wait for own writes of it. Rejects with KubeError. */
  async refresh(key: Key, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const known = this.#options.cache.get(key)?.metadata.uid;
    const object = await this.#options.client.get<T>(this.#options.resource, namespace, name, signal);
    const { cache } = this.#options;
    // A get knows no selector: what the stream would not show must not enter, for nothing would ever remove it.
    const foreign = known === undefined && (this.#scope.labelSelector || this.#scope.fieldSelector);
    if (!object) this.#emit(cache.forget(key, known));
    else if (!foreign) this.#emit(cache.put(this.#enter(object), 'live'));
    cache.settle(key);
  }

  async #list(state: ReflectorState, signal: AbortSignal): Promise<ReflectorState> {
    try {
      const { items, resourceVersion } = await this.#pages(signal);
      for (const changes of this.#options.cache.replace(items, resourceVersion, this.#scope.namespace)) {
        for (const change of changes) this.#emit(change);
        await setImmediate(undefined, { signal });
      }
      this.#synced.resolve();
      return step(state, { type: 'listed', resourceVersion }, this.#random());
    } catch (error) {
      signal.throwIfAborted();
      this.#logger.warn(`list failed, trying again: ${messageOf(error)}`);
      const retryAfterMs = error instanceof KubeError ? error.retryAfterMs : undefined;
      return step(state, { type: 'list-failed', retryAfterMs }, this.#random());
    }
  }

  async #pages(signal: AbortSignal): Promise<{ items: T[]; resourceVersion: string }> {
    const { client, resource } = this.#options;
    const items: T[] = [];
    let limit = PROBE;
    let next: string | undefined;
    for (;;) {
      try {
        const page = await client.listPage<T>(resource, this.#scope, { limit, next, tries: 1 }, signal);
        this.#heard();
        for (const item of page.items) items.push(this.#enter(item));
        if (page.next === undefined) return { items, resourceVersion: page.resourceVersion };
        next = page.next;
        limit = nextLimit(page.bytes, page.items.length);
      } catch (error) {
        if (!(error instanceof KubeError) || error.reason !== 'BodyTooLarge' || limit === 1) throw error;
        limit = Math.ceil(limit / 8);
      }
    }
  }

  async #watch(state: ReflectorState & { phase: 'watch' }, signal: AbortSignal): Promise<ReflectorState> {
    const { client, resource } = this.#options;
    const opened = this.#clock.monotonic();
    let { resourceVersion } = state;
    let frames = 0;
    const lived = () => ({ livedMs: this.#clock.monotonic() - opened, resourceVersion, frames });
    const options = { resourceVersion, timeoutSeconds: this.#watchMs / 1000, marginMs: this.#marginMs };
    try {
      for await (const event of client.watch<T>(resource, this.#scope, options, signal)) {
        this.#heard();
        frames++;
        this.#take(event);
        resourceVersion = event.object.metadata.resourceVersion ?? resourceVersion;
      }
      this.#heard();
      return step(state, { type: 'watch-closed', ...lived() }, this.#random());
    } catch (error) {
      signal.throwIfAborted();
      this.#logger.info(`watch ended, going on: ${messageOf(error)}`);
      const { code, retryAfterMs } = error instanceof KubeError ? error : { code: 0, retryAfterMs: undefined };
      return step(state, { type: 'watch-failed', ...lived(), code, retryAfterMs }, this.#random());
    }
  }

  #take(event: WatchEvent<T>): void {
    const { cache } = this.#options;
    if (event.type === 'BOOKMARK') cache.advance(event.object.metadata.resourceVersion ?? '', this.#scope.namespace);
    else if (event.type === 'DELETED') this.#emit(cache.remove(this.#enter(event.object)));
    else this.#emit(cache.put(this.#enter(event.object), 'stream'));
  }

  #enter(object: T): T {
    // A third of a typical object, read by nobody here. A copy, for `delete` would leave a slow and larger object behind.
    const { managedFields: _, ...metadata } = object.metadata as T['metadata'] & { managedFields?: unknown };
    object.metadata = metadata;
    return this.#options.trim ? this.#options.trim(object) : object;
  }

  #emit(change: Change<T> | undefined): void {
    if (!change) return;
    try {
      this.#options.onChange(change);
    } catch (error) {
      this.#logger.error({ err: error, key: change.key }, 'change handler failed');
    }
  }

  #heard(): void {
    this.#lastEvent = this.#clock.monotonic();
  }

  #random(): number {
    return (this.#options.random ?? Math.random)();
  }

  get #watchMs(): number {
    return (this.#options.watchSeconds ?? WATCH_SECONDS) * 1000;
  }

  get #marginMs(): number {
    return this.#options.marginMs ?? MARGIN_MS;
  }
}

/** How many objects of the size seen make a page that parses quickly. */
function nextLimit(bytes: number, count: number): number {
  const each = bytes / Math.max(1, count);
  return Math.max(1, Math.min(PAGE, Math.floor(PAGE_BYTES / Math.max(1, each))));
}
