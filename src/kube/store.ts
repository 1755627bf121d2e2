import { type Clock, systemClock } from '../base/clock.ts';
import { Expectations } from './expectations.ts';
import { type Key, type KubeObject, keyOf, type Store, splitKey } from './types.ts';
import { compareVersions, reaches } from './versions.ts';

/** What happened to an object in the cache. */
export interface Change<T extends KubeObject> {
  type: 'added' | 'updated' | 'deleted';
  key: Key;
  /** The new object; for `deleted` the last one known. */
  object: T;
  /** The object before an update. */
  old?: T;
  /** True while the first list fills the cache: background work. */
  initial: boolean;
}

export interface CacheOptions<T extends KubeObject> {
  /** Index name → the values an object is found under. Pure; called once per object and version. */
  indexes?: Record<string, (object: T) => readonly string[]>;
  /** Deep-freezes objects, so that a controller that changes shared state fails loudly; for tests and development. */
  freeze?: boolean;
  clock?: Clock;
  /** Namespaces, each filled by a reflector of its own; absent: one reflector fills it all. */
  namespaces?: readonly string[] | undefined;
}

type Index<T extends KubeObject> = { values: (object: T) => readonly string[]; keys: Map<string, Set<Key>> };

/** Changes per slice of a list: a few milliseconds. */
const SLICE = 250;
const NAMESPACE = '\0namespace';

/** Objects of one resource as the reflector last saw them, with indexes and the own writes not seen yet. */
export class Cache<T extends KubeObject> implements Store<T> {
  readonly #objects = new Map<Key, T>();
  readonly #indexes = new Map<string, Index<T>>();
  readonly #freeze: boolean;
  readonly #clock: Clock;
  readonly #settledListeners: ((waiter: Key) => void)[] = [];
  readonly #expectations = new Expectations((waiter) => {
    for (const listener of this.#settledListeners) listener(waiter);
  });
  /** How far the stream of each part has come: of each namespace, or of all under ''. */
  readonly #positions = new Map<string, string>();
  readonly #namespaces: readonly string[] | undefined;

  constructor(options: CacheOptions<T> = {}) {
    this.#namespaces = options.namespaces;
    this.#freeze = options.freeze ?? false;
    this.#clock = options.clock ?? systemClock;
    const namespaceOf = (object: T) => [object.metadata.namespace ?? ''];
    for (const [name, values] of Object.entries({ ...options.indexes, [NAMESPACE]: namespaceOf })) {
      this.#indexes.set(name, { values, keys: new Map() });
    }
  }

  get size(): number {
    return this.#objects.size;
  }

  /** True once the first list of every part is complete. */
  get synced(): boolean {
    return (this.#namespaces ?? ['']).every((part) => this.#positions.has(part));
  }

  get(key: Key): T | undefined {
    return this.#objects.get(key);
  }

  list(namespace?: string): T[] {
    return namespace === undefined ? [...this.#objects.values()] : this.byIndex(NAMESPACE, namespace);
  }

  /** Throws on an index that was not declared: an empty answer would read as "there is none". */
  byIndex(index: string, value: string): T[] {
    const found = this.#indexes.get(index);
    if (!found) throw new TypeError(`the cache has no index "${index}"; declare it where the cache is made`);
    const keys = found.keys.get(value);
    return keys ? Array.from(keys, (key) => this.#objects.get(key) as T) : [];
  }

  /** How many objects `byIndex` would give. */
  count(index: string, value: string): number {
    return this.#indexes.get(index)?.keys.get(value)?.size ?? 0;
  }

  /**
   * Takes an object from the watch or a live read; undefined when the cache has that version or a later one.
   * Only the stream moves the cache's position.
   */
  put(object: T, from: 'stream' | 'live'): Change<T> | undefined {
    const key = keyOf(object);
    const version = object.metadata.resourceVersion ?? '';
    const old = this.#objects.get(key);
    // A live read that the stream has overtaken is stale: the object may be deleted since.
    const part = this.#partOf(object.metadata.namespace);
    const overtaken = from === 'live' && reaches(this.#positions.get(part), version);
    const newer = !overtaken && (!old || !reaches(old.metadata.resourceVersion, version));
    if (newer) this.#set(key, object, old);
    if (from === 'stream') this.#positions.set(part, version);
    this.#expectations.seen(key, version);
    if (!newer) return undefined;
    return { type: old ? 'updated' : 'added', key, object, initial: false, ...(old ? { old } : {}) };
  }

  /** The stream deleted `object`, whose version is that of the deletion. */
  remove(object: T): Change<T> | undefined {
    const key = keyOf(object);
    const version = object.metadata.resourceVersion ?? '';
    const old = this.#objects.get(key);
    this.#positions.set(this.#partOf(object.metadata.namespace), version);
    const change = old && this.#drop(key, old);
    this.#expectations.seen(key, version);
    return change;
  }

  /** A live read did not find `key`: an object known to exist under another uid by now is left to the stream. */
  forget(key: Key, uid: string | undefined): Change<T> | undefined {
    const old = this.#objects.get(key);
    const change = old && old.metadata.uid === uid ? this.#drop(key, old) : undefined;
    this.#expectations.drop(key);
    return change;
  }

  /**
   * Replaces everything (of `namespace`, where each has its own stream) by a complete list taken at `resourceVersion`, in slices
   * between which the caller may let other work run; yields the differences, deletions last. At no moment is an object missing that
   * both the old state and the list have.
   */
  *replace(objects: readonly T[], resourceVersion: string, namespace?: string): Generator<Change<T>[]> {
    const listed = new Set<Key>();
    const part = this.#partOf(namespace);
    const initial = !this.#positions.has(part);
    let changes: Change<T>[] = [];
    for (const object of objects) {
      const key = keyOf(object);
      listed.add(key);
      const old = this.#objects.get(key);
      if (old && reaches(old.metadata.resourceVersion, object.metadata.resourceVersion ?? '')) continue;
      this.#set(key, object, old);
      changes.push({ type: old ? 'updated' : 'added', key, object, initial, ...(old ? { old } : {}) });
      if (changes.length < SLICE) continue;
      yield changes;
      changes = [];
    }
    changes = changes.concat(this.#dropUnlisted(listed, resourceVersion, part));
    this.advance(resourceVersion, namespace);
    yield changes;
  }

  /** A bookmark or a list: the cache shows everything (of `namespace`) up to `resourceVersion`. */
  advance(resourceVersion: string, namespace?: string): void {
    const part = this.#partOf(namespace);
    this.#positions.set(part, resourceVersion);
    this.#expectations.advanced(resourceVersion, (key) => this.#partOf(splitKey(key).namespace) === part);
  }

  #partOf(namespace: string | undefined): string {
    return this.#namespaces ? (namespace ?? '') : '';
  }

  /**
   * After an own write: `waiter` (the object's key by default) waits until the cache shows `resourceVersion` of `key`, or
   * something later. A no-op when it does already.
   */
  expect(key: Key, resourceVersion: string | undefined, waiter: Key = key): void {
    if (!resourceVersion || reaches(this.#objects.get(key)?.metadata.resourceVersion, resourceVersion)) return;
    // The stream is in order: being past the write means having shown it, even of an object deleted since.
    const position = this.#positions.get(this.#partOf(splitKey(key).namespace));
    if (position !== undefined && (compareVersions(position, resourceVersion) ?? -1) >= 0) return;
    this.#expectations.expect(key, resourceVersion, waiter, this.#clock.monotonic());
  }

  /** Own writes that `waiter` still waits for; undefined: none. `since` is monotonic milliseconds. */
  pending(waiter: Key): { keys: Key[]; since: number } | undefined {
    return this.#expectations.open(waiter);
  }

  /** Calls `listener` with a waiter whenever its last pending write became visible. */
  onSettled(listener: (waiter: Key) => void): void {
    this.#settledListeners.push(listener);
  }

  /** Ends the wait for an object that a live read has brought up to date. */
  settle(key: Key): void {
    this.#expectations.drop(key);
  }

  #set(key: Key, object: T, old: T | undefined): void {
    if (this.#freeze) deepFreeze(object);
    if (old) this.#unindex(key, old);
    this.#objects.set(key, object);
    for (const { values, keys } of this.#indexes.values()) {
      for (const value of values(object)) {
        const set = keys.get(value);
        if (set) set.add(key);
        else keys.set(value, new Set([key]));
      }
    }
  }

  #dropUnlisted(listed: ReadonlySet<Key>, resourceVersion: string, part: string): Change<T>[] {
    const gone: Change<T>[] = [];
    for (const [key, old] of this.#objects) {
      if (listed.has(key) || this.#partOf(old.metadata.namespace) !== part) continue;
      // What a live read brought in after the list was taken stays.
      const later = (compareVersions(old.metadata.resourceVersion ?? '', resourceVersion) ?? 0) > 0;
      if (!later) gone.push(this.#drop(key, old));
    }
    return gone;
  }

  #drop(key: Key, old: T): Change<T> {
    this.#unindex(key, old);
    this.#objects.delete(key);
    return { type: 'deleted', key, object: old, initial: false };
  }

  #unindex(key: Key, object: T): void {
    for (const { values, keys } of this.#indexes.values()) {
      for (const value of values(object)) {
        const set = keys.get(value);
        if (set?.delete(key) && set.size === 0) keys.delete(value);
      }
    }
  }
}

/** Freezes an object and everything below it. */
function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const child of Object.values(value)) deepFreeze(child);
}
