import { fromStatus, KubeError } from './errors.ts';
import type { KubeObject } from './types.ts';

/** One page of a list. */
export interface Page<T extends KubeObject> {
  items: T[];
  resourceVersion: string;
  /** Token of the next page; absent on the last. */
  next?: string;
  /** Size of the answer in bytes. */
  bytes: number;
}

/** One frame of a watch; an ERROR frame is thrown as KubeError instead. */
export interface WatchEvent<T extends KubeObject> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  object: T;
}

/** The page in the body of a list; KubeError `BadBody` when it is none. */
export function pageOf<T extends KubeObject>(body: unknown, subject: string): Omit<Page<T>, 'bytes'> {
  const list = body as { items?: unknown; metadata?: { resourceVersion?: unknown; continue?: unknown } } | null;
  const resourceVersion = list?.metadata?.resourceVersion;
  if (typeof resourceVersion !== 'string' || resourceVersion === '') {
    throw new KubeError(0, 'BadBody', `${subject}: the list has no resourceVersion`);
  }
  // Go encodes an empty list as null.
  const items = (list?.items ?? []) as T[];
  if (!Array.isArray(items)) throw new KubeError(0, 'BadBody', `${subject}: items is no array`);
  const next = list?.metadata?.continue;
  return { items, resourceVersion, ...(typeof next === 'string' && next !== '' ? { next } : {}) };
}

const WATCH_TYPES: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']);

/** The event in a frame of a watch; throws the Status of an ERROR frame. */
export function watchEvent<T extends KubeObject>(frame: unknown, subject: string): WatchEvent<T> {
  const event = frame as { type?: unknown; object?: { metadata?: { resourceVersion?: unknown } } } | null;
  if (event?.type === 'ERROR') throw fromStatus(subject, 500, event.object);
  if (!WATCH_TYPES.has(event?.type) || typeof event?.object?.metadata?.resourceVersion !== 'string') {
    throw new KubeError(0, 'BadBody', `${subject}: a frame is no watch event`);
  }
  return event as WatchEvent<T>;
}
