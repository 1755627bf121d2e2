import { preconditionOf, type Writer } from './apply.ts';
import type { KubeObject } from './types.ts';

/**
 * Adds a finalizer in a write of its own, to that very object in that very version.
 * Resolves with the object as it is afterwards (the given one when it has the finalizer already).
 * Rejects with KubeError 409 when the object changed: read it again. Finalizers of others are kept.
 */
export async function addFinalizer<T extends KubeObject>(
  writer: Writer,
  object: T,
  finalizer: string,
  signal: AbortSignal,
): Promise<T> {
  const present = object.metadata.finalizers ?? [];
  return present.includes(finalizer) ? object : setFinalizers(writer, object, [...present, finalizer], signal);
}

/** Removes a finalizer under the same conditions; the last one removed from a terminating object ends it. */
export async function removeFinalizer<T extends KubeObject>(
  writer: Writer,
  object: T,
  finalizer: string,
  signal: AbortSignal,
): Promise<T> {
  const present = object.metadata.finalizers ?? [];
  if (!present.includes(finalizer)) return object;
  return setFinalizers(
    writer,
    object,
    present.filter((f) => f !== finalizer),
    signal,
  );
}

/** A merge patch replaces the whole list, which is safe because the resourceVersion proves that the list was seen. */
function setFinalizers<T extends KubeObject>(
  writer: Writer,
  object: T,
  finalizers: string[],
  signal: AbortSignal,
): Promise<T> {
  const { namespace = '', name } = object.metadata;
  const body = { metadata: { ...preconditionOf(object), finalizers } };
  const patch = { kind: 'merge', body, fieldManager: writer.fieldManager } as const;
  return writer.api.patch<T>(writer.resource, namespace, name, patch, signal);
}
