import type { KubeApi, KubeObject, ObjectMeta, Resource } from './types.ts';

/** The object a write is meant for; both values are sent, so that a stale or late write is refused with 409. */
export interface Precondition {
  uid: string;
  resourceVersion: string;
}

/** What an apply may say of an object: identity and owned fields, never what the server keeps. */
export type Applied = Omit<KubeObject, 'metadata'> & {
  apiVersion: string;
  kind: string;
  metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'labels' | 'annotations' | 'ownerReferences' | 'finalizers'>;
};

/** Who writes: the resource, the calls and the name under which the API server remembers the fields. */
export interface Writer {
  api: KubeApi;
  resource: Resource;
  fieldManager: string;
}

/** The precondition of an object as read. Throws TypeError on an object that did not come from the API server. */
export function preconditionOf(object: KubeObject): Precondition {
  const { uid, resourceVersion, name } = object.metadata;
  if (!uid || !resourceVersion) throw new TypeError(`object "${name}" has no uid or resourceVersion; read it first`);
  return { uid, resourceVersion };
}

/**
 * Creates by server-side apply without force and without uid (invariant I3).
 * Rejects with KubeError 409 when somebody else owns a field of an object of that name: read it live and decide.
 */
export function applyCreate<T extends KubeObject>(writer: Writer, object: Applied, signal: AbortSignal): Promise<T> {
  const { namespace = '', name } = object.metadata;
  const patch = { kind: 'apply', body: object, fieldManager: writer.fieldManager, force: false } as const;
  return writer.api.patch<T>(writer.resource, namespace, name, patch, signal);
}

/**
 * Updates by server-side apply with force, uid and resourceVersion (I3): without them a stale apply would erase fields and a
 * late one would bring a deleted object back. Rejects with KubeError 409 when the object changed or is gone.
 */
export function applyUpdate<T extends KubeObject>(
  writer: Writer,
  live: Precondition,
  object: Applied,
  signal: AbortSignal,
): Promise<T> {
  return guarded<T>(writer, live, object, signal);
}

/**
 * Applies `status` and nothing else to the status subresource, under the same conditions as `applyUpdate`.
 * Fields that this manager applied before and leaves out now are removed.
 */
export function applyStatus<T extends KubeObject>(
  writer: Writer,
  live: T,
  status: object,
  signal: AbortSignal,
): Promise<T> {
  const { group, version, kind } = writer.resource;
  const { name, namespace } = live.metadata;
  const object = {
    apiVersion: group === '' ? version : `${group}/${version}`,
    kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    status,
  };
  return guarded<T>(writer, preconditionOf(live), object, signal, 'status');
}

function guarded<T extends KubeObject>(
  writer: Writer,
  { uid, resourceVersion }: Precondition,
  object: Applied,
  signal: AbortSignal,
  subresource?: 'status',
): Promise<T> {
  const { namespace = '', name } = object.metadata;
  const body = { ...object, metadata: { ...object.metadata, uid, resourceVersion } };
  const patch = { kind: 'apply', body, fieldManager: writer.fieldManager, force: true } as const;
  return writer.api.patch<T>(writer.resource, namespace, name, patch, signal, subresource);
}
