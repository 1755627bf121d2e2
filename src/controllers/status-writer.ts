import { isDeepStrictEqual } from 'node:util';
import { applyStatus, type Writer } from '../kube/apply.ts';
import { hasCode, KubeError } from '../kube/errors.ts';
import { type Key, type KubeObject, keyOf, type Store } from '../kube/types.ts';

/** The cache that must show a write before its key is worked on again (I2). */
export interface Expecting {
  expect(key: Key, resourceVersion: string | undefined, waiter?: Key): void;
}

const TRIES = 4;

/**
 * Applies a status that this manager alone writes, on top of the newest state that the cache has of `object` (I3): another manager may
 * have written its part during the pass. After a 409 it reads the object live. Same uid: `status` is applied again, since it says
 * itself which generation it observed; another uid or gone: nothing is written and undefined comes back.
 */
export async function writeStatus<T extends KubeObject>(
  writer: Writer,
  cache: Expecting & Pick<Store<T>, 'get'>,
  object: T,
  status: object,
  signal: AbortSignal,
): Promise<T | undefined> {
  const cached = cache.get(keyOf(object));
  let live: T | undefined = cached && cached.metadata.uid === object.metadata.uid ? cached : object;
  for (let attempt = 1; ; attempt++) {
    try {
      const written: T = await applyStatus(writer, live, status, signal);
      cache.expect(keyOf(object), written.metadata.resourceVersion);
      return written;
    } catch (error) {
      if (!isStale(error) || attempt === TRIES) throw error;
    }
    const { namespace = '', name } = object.metadata;
    live = await writer.api.get<T>(writer.resource, namespace, name, signal);
    if (!live || live.metadata.uid !== object.metadata.uid) return undefined;
  }
}

/** 409 on a changed object; 404 on one that went meanwhile. */
const isStale = (error: unknown): boolean => hasCode(error, 409) || (error instanceof KubeError && error.code === 404);

/** True when every member of `wanted` has that value in `current`, and `current` has no member of `owned` that `wanted` lacks. */
export function sameFields(current: object, wanted: object, owned: readonly string[]): boolean {
  const pick = (from: object) =>
    Object.fromEntries(Object.entries(from).filter(([key, value]) => owned.includes(key) && value !== undefined));
  return isDeepStrictEqual(pick(current), pick(wanted));
}
