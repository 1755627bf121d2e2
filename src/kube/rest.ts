import { type Clock, systemClock } from '../base/clock.ts';
import { type Page, pageOf, type WatchEvent, watchEvent } from './answers.ts';
import { type Call, Caller, type KubeClientOptions, type Verb } from './caller.ts';
import type { Exchange } from './connection.ts';
import { fromTransport, isNotFound, KubeError } from './errors.ts';
import { jsonLines, MAX_OBJECT_BYTES } from './frames.ts';
import { collectionPath, objectPath, queryOf, type Scope } from './scope.ts';
import type { KubeApi, KubeObject, Patch, Resource } from './types.ts';

const READ_MS = 10_000;
const WRITE_MS = 30_000;
const LIST_MS = 30_000;
/** Cap of one page; a larger one makes the caller ask for fewer objects. */
const MAX_PAGE_BYTES = 64 * 1024 * 1024;

const PATCH_TYPES: Record<Patch['kind'], string> = {
  // JSON is YAML; the server has no JSON media type for apply.
  apply: 'application/apply-patch+yaml',
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
};

/**
 * The API server over one bounded pool of connections. Every call has a deadline (reads 10 s, writes and lists 30 s),
 * re-reads credentials once on 401, and sits out 429 and 503 (≤ 5 tries, a Retry-After above 15 s goes to the caller).
 * Rejects with KubeError, or with the signal's reason when the caller aborts.
 */
export class KubeClient implements KubeApi {
  readonly #caller: Caller;
  readonly #clock: Clock;

  constructor(options: KubeClientOptions) {
    this.#clock = options.clock ?? systemClock;
    this.#caller = new Caller(options);
  }

  get requests(): Readonly<Record<string, number>> {
    return this.#caller.requests;
  }

  /** Namespace of the current context; inside a pod the pod's own. */
  get namespace(): string | undefined {
    return this.#caller.namespace;
  }

  async get<T extends KubeObject>(
    resource: Resource,
    namespace: string,
    name: string,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const exchange: Exchange = { method: 'GET', path: objectPath(resource, namespace, name) };
    try {
      return (await this.#caller.run(read(resource, namespace, name, exchange), signal)).body as T;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async create<T extends KubeObject>(resource: Resource, namespace: string, body: T, signal: AbortSignal): Promise<T> {
    const exchange: Exchange = {
      method: 'POST',
      path: collectionPath(resource, namespace),
      contentType: 'application/json',
      body: JSON.stringify(body),
    };
    return (await this.#caller.run(write('create', resource, namespace, body.metadata.name, exchange), signal))
      .body as T;
  }

  async patch<T extends KubeObject>(
    resource: Resource,
    namespace: string,
    name: string,
    patch: Patch,
    signal: AbortSignal,
    subresource?: 'status',
  ): Promise<T> {
    const query = patchQuery(patch);
    const exchange: Exchange = {
      method: 'PATCH',
      path: objectPath(resource, namespace, name, subresource) + query,
      contentType: PATCH_TYPES[patch.kind],
      body: JSON.stringify(patch.body),
    };
    return (await this.#caller.run(write('patch', resource, namespace, name, exchange), signal)).body as T;
  }

  async delete(
    resource: Resource,
    namespace: string,
    name: string,
    preconditions: { uid?: string; resourceVersion?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const exchange: Exchange = {
      method: 'DELETE',
      path: objectPath(resource, namespace, name),
      contentType: 'application/json',
      body: JSON.stringify({ apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', preconditions }),
    };
    try {
      await this.#caller.run(write('delete', resource, namespace, name, exchange), signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /**
   * The last `tailLines` lines of a container's log, cut after their first `limitBytes` bytes.
   * Rejects with KubeError 400 before the container ran, 404 when pod or log are gone.
   */
  podLog(
    pod: { resource: Resource; namespace: string; name: string; container: string },
    bounds: { tailLines: number; limitBytes: number },
    signal: AbortSignal,
  ): Promise<string> {
    const { resource, namespace, name, container } = pod;
    const path = objectPath(resource, namespace, name, 'log') + queryOf({}, { container, ...bounds });
    const call = read(resource, namespace, name, { method: 'GET', path });
    // The server counts bytes, and what it sends in place of a broken character may be longer.
    return this.#caller.text({ ...call, cap: bounds.limitBytes * 3 }, signal);
  }

  /** One page of at most `limit` objects; `next` of the page before continues it. `tries` 1 leaves waiting to the caller. */
  async listPage<T extends KubeObject>(
    resource: Resource,
    scope: Scope,
    page: { limit: number; next?: string | undefined; tries?: number },
    signal: AbortSignal,
  ): Promise<Page<T>> {
    const query = queryOf(scope, { limit: page.limit, continue: page.next });
    const subject = `list ${resource.plural}${scope.namespace ? ` in ${scope.namespace}` : ''}`;
    const call: Call = {
      verb: 'list',
      resource,
      subject,
      exchange: { method: 'GET', path: collectionPath(resource, scope.namespace) + query },
      deadlineMs: LIST_MS,
      cap: MAX_PAGE_BYTES,
      ...(page.tries === undefined ? {} : { tries: page.tries }),
    };
    const { body, bytes } = await this.#caller.run(call, signal);
    return { ...pageOf<T>(body, subject), bytes };
  }

  /**
   * Frames after `resourceVersion`, until the server ends the watch after `timeoutSeconds`.
   * Rejects with `Timeout` when the stream is still open `marginMs` later (a half-open connection), with the Status of an
   * ERROR frame (410: list again), with `BadBody` when it ends inside a frame. No retries: that is the reflector's part.
   */
  async *watch<T extends KubeObject>(
    resource: Resource,
    scope: Scope,
    options: { resourceVersion: string; timeoutSeconds: number; marginMs: number },
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<T>> {
    const { resourceVersion, timeoutSeconds, marginMs } = options;
    const query = queryOf(scope, { watch: true, allowWatchBookmarks: true, resourceVersion, timeoutSeconds });
    const subject = `watch ${resource.plural}${scope.namespace ? ` in ${scope.namespace}` : ''}`;
    const exchange: Exchange = { method: 'GET', path: collectionPath(resource, scope.namespace) + query };
    const limit = new AbortController();
    const late = () => limit.abort(new KubeError(0, 'Timeout', `${subject}: the stream is open but past its end`));
    const cancel = this.#clock.after(timeoutSeconds * 1000 + marginMs, late);
    const either = AbortSignal.any([signal, limit.signal]);
    try {
      const body = await this.#caller.open({ verb: 'watch', resource, subject, exchange }, either);
      for await (const frame of jsonLines(body, subject)) {
        signal.throwIfAborted();
        yield watchEvent<T>(frame, subject);
      }
    } catch (error) {
      signal.throwIfAborted();
      throw limit.signal.aborted ? limit.signal.reason : fromTransport(subject, error);
    } finally {
      cancel();
      limit.abort();
    }
  }

  /**
   * Bytes of a subresource as the server sends them, such as the log of a pod, until it ends them.
   * No retries; only the first answer has a deadline. Rejects with the KubeError of a refusal, or `Network` when the stream breaks.
   */
  async *stream(
    resource: Resource,
    namespace: string,
    name: string,
    subresource: { path: string; query: Record<string, string | number | boolean | undefined> },
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    const path = objectPath(resource, namespace, name, subresource.path) + queryOf({}, subresource.query);
    const subject = `get ${resource.plural}/${subresource.path} ${labelOf(namespace, name)}`;
    const ended = new AbortController();
    const either = AbortSignal.any([signal, ended.signal]);
    try {
      yield* await this.#caller.open({ verb: 'get', resource, subject, exchange: { method: 'GET', path } }, either);
    } catch (error) {
      signal.throwIfAborted();
      throw fromTransport(subject, error);
    } finally {
      // A reader that stops early must not leave the stream open.
      ended.abort();
    }
  }

  /** The release of the API server, such as `v1.34.4`. */
  async version(signal: AbortSignal): Promise<string> {
    const resource = { group: '', version: '', plural: 'version', kind: 'Info', namespaced: false };
    const exchange: Exchange = { method: 'GET', path: '/version' };
    const call: Call = {
      verb: 'get',
      resource,
      subject: 'get version',
      exchange,
      deadlineMs: READ_MS,
      cap: MAX_OBJECT_BYTES,
    };
    const { body } = await this.#caller.run(call, signal);
    return String((body as { gitVersion?: unknown } | null)?.gitVersion ?? 'unknown');
  }

  /** Ends all connections; calls in flight fail. */
  close(): Promise<void> {
    return this.#caller.close();
  }
}

const labelOf = (namespace: string, name: string): string => (namespace === '' ? name : `${namespace}/${name}`);

function read(resource: Resource, namespace: string, name: string, exchange: Exchange): Call {
  const subject = `get ${resource.plural} ${labelOf(namespace, name)}`;
  return { verb: 'get', resource, subject, exchange, deadlineMs: READ_MS, cap: MAX_OBJECT_BYTES };
}

function write(verb: Verb, resource: Resource, namespace: string, name: string, exchange: Exchange): Call {
  const subject = `${verb} ${resource.plural} ${labelOf(namespace, name)}`;
  return { verb, resource, subject, exchange, deadlineMs: WRITE_MS, cap: MAX_OBJECT_BYTES };
}

function patchQuery(patch: Patch): string {
  if (patch.kind === 'apply') return queryOf({}, { fieldManager: patch.fieldManager, force: patch.force });
  return patch.kind === 'merge' ? queryOf({}, { fieldManager: patch.fieldManager }) : '';
}
