/** What the store says about an object. */
export interface ObjectInfo {
  key: string;
  size: number;
  /** Milliseconds since the epoch by the store's clock. */
  lastModified: number;
}

/**
 * An S3-shaped object store with the few verbs this product needs.
 * Every call has its own deadline, obeys `signal` and fails with a PolicyError of a Store* reason.
 */
export interface ObjectStore {
  /** undefined when there is no such key. */
  head(key: string, signal: AbortSignal): Promise<ObjectInfo | undefined>;
  /** The bytes, or undefined when there is no such key; `range` is inclusive offsets; more than `maxBytes` is StoreCorrupt. */
  get(
    key: string,
    options: { maxBytes: number; range?: { start: number; end: number } },
    signal: AbortSignal,
  ): Promise<Uint8Array | undefined>;
  /** Writes unless the key exists (If-None-Match: *); tells which it was. Idempotent, retried once. */
  putIfAbsent(key: string, bytes: Uint8Array, contentType: string, signal: AbortSignal): Promise<'created' | 'exists'>;
  /** Writes in any case. For heal (bytes of the same digest), records and marks alone. */
  put(key: string, bytes: Uint8Array, contentType: string, signal: AbortSignal): Promise<void>;
  /** Pages of keys below a prefix in key order. */
  list(prefix: string, signal: AbortSignal): AsyncIterable<ObjectInfo[]>;
  /** No error when the key is not there. */
  delete(key: string, signal: AbortSignal): Promise<void>;
  /** A URL that reads the key without credentials for `seconds`. */
  presignGet(key: string, seconds: number): Promise<string>;
  /** Proves address, credentials and bucket with one cheap read. */
  check(signal: AbortSignal): Promise<void>;
  /** Number of requests sent by kind since start (put counts each PUT on the wire). */
  readonly requests: Readonly<Record<'head' | 'get' | 'put' | 'list' | 'delete', number>>;
}
