/** An API resource as URLs name it. */
export interface Resource {
  /** '' is the core group. */
  group: string;
  version: string;
  plural: string;
  kind: string;
  namespaced: boolean;
}

/** The part of metadata the runtime reads. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  finalizers?: string[];
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
}

interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** Any Kubernetes object. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** `namespace/name`, or `name` for cluster-scoped objects. */
export type Key = string;

export const keyOf = (object: KubeObject): Key =>
  object.metadata.namespace ? `${object.metadata.namespace}/${object.metadata.name}` : object.metadata.name;

export function splitKey(key: Key): { namespace: string; name: string } {
  const at = key.indexOf('/');
  return at < 0 ? { namespace: '', name: key } : { namespace: key.slice(0, at), name: key.slice(at + 1) };
}

/** metav1.Condition. */
export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  observedGeneration?: number;
  lastTransitionTime: string;
  reason: string;
  message: string;
}

/** How a patch is sent; there is no default on purpose (a wrong content type is a silent disaster). */
export type Patch =
  | { kind: 'apply'; body: object; fieldManager: string; force: boolean }
  | { kind: 'merge'; body: object; fieldManager?: string }
  | { kind: 'json'; body: object[] };

/** The calls the controllers make. Failures are KubeErrors. */
export interface KubeApi {
  get<T extends KubeObject>(
    resource: Resource,
    namespace: string,
    name: string,
    signal: AbortSignal,
  ): Promise<T | undefined>;
  create<T extends KubeObject>(resource: Resource, namespace: string, body: T, signal: AbortSignal): Promise<T>;
  patch<T extends KubeObject>(
    resource: Resource,
    namespace: string,
    name: string,
    patch: Patch,
    signal: AbortSignal,
    subresource?: 'status',
  ): Promise<T>;
  /** Deletes that very object: both preconditions are sent when given. undefined: it was gone already. */
  delete(
    resource: Resource,
    namespace: string,
    name: string,
    preconditions: { uid?: string; resourceVersion?: string },
    signal: AbortSignal,
  ): Promise<void>;
  /** Number of requests sent since start, by verb (get, list, watch, create, patch, delete). */
  readonly requests: Readonly<Record<string, number>>;
}

/** The read side of a cache: what the reflector has seen. Objects are shared and never to be changed. */
export interface Store<T extends KubeObject> {
  get(key: Key): T | undefined;
  list(namespace?: string): T[];
  /** Objects whose index function gave `value`. */
  byIndex(index: string, value: string): T[];
  readonly size: number;
  readonly synced: boolean;
}

/** Asks the controller to look at a key again. */
export interface Enqueue {
  /** `priority` true: ahead of background work. `delayMs`: not before. */
  add(key: Key, options?: { delayMs?: number; priority?: boolean }): void;
}

/** What a reconcile wants next; an error thrown carries its policy instead. */
export interface ReconcileResult {
  /** Look again after this many milliseconds, even if nothing changes. */
  requeueAfterMs?: number;
  /** Nothing was tried: a row of failures goes on. */
  undecided?: boolean;
}

export type Reconcile = (key: Key, signal: AbortSignal) => Promise<ReconcileResult>;
