import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import { eventually } from './eventually.ts';
import { type Answer, type Api, connect } from './k8s-client.ts';

/** Any object of the API, as JSON. */
export interface K8sObject {
  apiVersion: string;
  kind: string;
  metadata: {
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
    ownerReferences?: Record<string, unknown>[];
    managedFields?: Record<string, unknown>[];
  };
  // The tests read and write whatever the API server has.
  // biome-ignore lint/suspicious/noExplicitAny: objects of all kinds pass through here, and a test states what it expects of them.
  [field: string]: any;
}

/** Which object is meant. */
export interface Ref {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
}

interface ApplyOptions {
  /** Field manager; default `test`. */
  manager?: string;
  /** Takes fields from other managers; default true. */
  force?: boolean;
  subresource?: 'status';
  dryRun?: boolean;
}

interface WaitOptions {
  timeoutMs?: number;
  what?: string;
}

interface Resource {
  plural: string;
  namespaced: boolean;
}

const BUSY_TIMEOUT_MS = 10_000;

/** An answer of the API server that says no; `status`, `reason` and `message` are those of its Status object. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(what: string, answer: Answer) {
    const parsed = parseStatus(answer.text);
    super(`${what}: ${answer.status} ${parsed.reason ?? ''} ${parsed.message ?? answer.text.slice(0, 500)}`);
    this.status = answer.status;
    this.reason = parsed.reason ?? '';
  }
}

function parseStatus(text: string): { reason?: string; message?: string } {
  try {
    return JSON.parse(text) as { reason?: string; message?: string };
  } catch {
    return {};
  }
}

/** All objects of a YAML text; empty documents are left out. */
export function parseObjects(yaml: string): K8sObject[] {
  return parseAllDocuments(yaml)
    .map((document) => document.toJS() as K8sObject | null)
    .filter((object) => object !== null);
}

/** The condition of that type in an object's status. */
export function condition(
  object: K8sObject,
  type: string,
): { status: string; reason: string; message: string } | undefined {
  const conditions = (object.status?.conditions ?? []) as {
    type: string;
    status: string;
    reason: string;
    message: string;
  }[];
  return conditions.find((candidate) => candidate.type === type);
}

/** A test's hands on the API server, with whatever rights its kubeconfig gives. */
export class K8s implements AsyncDisposable {
  readonly api: Api;
  readonly #resources = new Map<string, Map<string, Resource>>();

  constructor(kubeconfigPath: string) {
    this.api = connect(kubeconfigPath);
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.api[Symbol.asyncDispose]();
  }

  /** Applies objects server-side, one after the other, and returns what the server made of them. */
  async apply(objects: string | K8sObject | readonly K8sObject[], options: ApplyOptions = {}): Promise<K8sObject[]> {
    const list = typeof objects === 'string' ? parseObjects(objects) : [objects].flat();
    const query = new URLSearchParams({
      fieldManager: options.manager ?? 'test',
      force: String(options.force ?? true),
      ...(options.dryRun ? { dryRun: 'All' } : {}),
    });
    const applied: K8sObject[] = [];
    for (const object of list) {
      const path = await this.path(refOf(object));
      const target = `${path}${options.subresource ? `/${options.subresource}` : ''}?${query}`;
      const text = await this.#expect('PATCH', target, object, 'application/apply-patch+yaml');
      applied.push(JSON.parse(text) as K8sObject);
    }
    return applied;
  }

  /** The object, or undefined when there is none. */
  async get(ref: Ref): Promise<K8sObject | undefined> {
    const path = await this.path(ref);
    const answer = await this.#request('GET', path);
    if (answer.status === 404) return undefined;
    if (answer.status !== 200) throw new ApiFailure(`GET ${path}`, answer);
    return JSON.parse(answer.text) as K8sObject;
  }

  /** All objects of a kind, in a namespace or everywhere. */
  async list(ref: Omit<Ref, 'name'> & { labelSelector?: string }): Promise<K8sObject[]> {
    const path = await this.path({ ...ref, name: '' });
    const query = ref.labelSelector === undefined ? '' : `?labelSelector=${encodeURIComponent(ref.labelSelector)}`;
    const { items } = JSON.parse(await this.#expect('GET', `${path}${query}`)) as { items: K8sObject[] };
    return items.map((item) => ({ ...item, apiVersion: ref.apiVersion, kind: ref.kind }));
  }

  /** Changes an object with a JSON merge patch. */
  async patch(ref: Ref, change: Record<string, unknown>, subresource?: 'status'): Promise<K8sObject> {
    const path = `${await this.path(ref)}${subresource ? `/${subresource}` : ''}`;
    return JSON.parse(await this.#expect('PATCH', path, change, 'application/merge-patch+json')) as K8sObject;
  }

  /** Sets annotations; null takes one away. */
  async annotate(ref: Ref, annotations: Record<string, string | null>): Promise<K8sObject> {
    return await this.patch(ref, { metadata: { annotations } });
  }

  /** Deletes an object; one that is not there is no error. */
  async delete(ref: Ref): Promise<void> {
    const path = await this.path(ref);
    const answer = await this.#request('DELETE', path, { body: { propagationPolicy: 'Background' } });
    if (answer.status !== 404 && answer.status >= 300) throw new ApiFailure(`DELETE ${path}`, answer);
  }

  /** Waits until the object exists and `accept` is true of it; the error shows its last status. */
  async waitFor(ref: Ref, accept: (object: K8sObject) => boolean, options: WaitOptions = {}): Promise<K8sObject> {
    const { timeoutMs = 20_000, what = `${ref.kind} ${ref.name} as expected` } = options;
    return await eventually(
      async () => {
        const object = await this.get(ref);
        if (!object) throw new Error(`there is no ${ref.kind} ${ref.name}`);
        if (!accept(object)) throw new Error(`its status is ${JSON.stringify(object.status ?? null)}`);
        return object;
      },
      { timeoutMs, what, intervalMs: 40 },
    );
  }

  /** Waits until a condition has a status (default `True`) and, when given, a reason. */
  async waitCondition(ref: Ref, type: string, status = 'True', reason?: string): Promise<K8sObject> {
    return await this.waitFor(
      ref,
      (object) => {
        const found = condition(object, type);
        return found?.status === status && (reason === undefined || found.reason === reason);
      },
      { what: `condition ${type}=${status}${reason === undefined ? '' : ` (${reason})`} of ${ref.kind} ${ref.name}` },
    );
  }

  /** Waits until the object is gone. */
  async waitGone(ref: Ref, options: WaitOptions = {}): Promise<void> {
    const { timeoutMs = 60_000, what = `the end of ${ref.kind} ${ref.name}` } = options;
    await eventually(async () => (await this.get(ref)) === undefined, { timeoutMs, what, intervalMs: 100 });
  }

  /** Creates a namespace with a name of its own and returns the name. */
  async createNamespace(prefix = 'test', labels: Record<string, string> = {}): Promise<string> {
    const name = `${prefix}-${randomBytes(4).toString('hex')}`;
    await this.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
    return name;
  }

  /** The path of an object, or of the list of its kind when the name is empty. Asks the server how the kind is called. */
  async path({ apiVersion, kind, namespace, name }: Ref): Promise<string> {
    const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const resource = await this.#resource(root, kind);
    const scope = resource.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
    if (resource.namespaced && name !== '' && namespace === undefined)
      throw new Error(`${kind} ${name} needs a namespace`);
    return `${root}${scope}/${resource.plural}${name === '' ? '' : `/${encodeURIComponent(name)}`}`;
  }

  async #resource(root: string, kind: string): Promise<Resource> {
    let known = this.#resources.get(root)?.get(kind);
    if (!known) {
      // A CRD is Established a moment before discovery lists its kind.
      known = await eventually(async () => (await this.#discover(root)).get(kind), {
        timeoutMs: 5_000,
        what: `kind ${kind} in ${root}`,
        intervalMs: 100,
      });
    }
    return known;
  }

  async #discover(root: string): Promise<Map<string, Resource>> {
    const { resources } = JSON.parse(await this.#expect('GET', root)) as {
      resources: { name: string; kind: string; namespaced: boolean }[];
    };
    const kinds = new Map(
      resources
        .filter(({ name }) => !name.includes('/'))
        .map(({ name, kind, namespaced }) => [kind, { plural: name, namespaced }]),
    );
    this.#resources.set(root, kinds);
    return kinds;
  }

  /** A CRD that was just applied answers 429 for a moment ("storage is (re)initializing"); that is no news to a test. */
  async #request(method: string, path: string, options: Parameters<Api['request']>[2] = {}): Promise<Answer> {
    const deadline = performance.now() + BUSY_TIMEOUT_MS;
    for (;;) {
      const answer = await this.api.request(method, path, options);
      if (answer.status !== 429 || performance.now() > deadline) return answer;
      await delay(100);
    }
  }

  async #expect(method: string, path: string, body?: unknown, contentType?: string): Promise<string> {
    const options = { ...(body === undefined ? {} : { body }), ...(contentType === undefined ? {} : { contentType }) };
    const answer = await this.#request(method, path, options);
    if (answer.status >= 300) throw new ApiFailure(`${method} ${path}`, answer);
    return answer.text;
  }
}

/** The reference of an object at hand. */
export function refOf({ apiVersion, kind, metadata }: K8sObject): Ref {
  const { name, namespace } = metadata;
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
}
