import { messageOf } from '../base/errors.ts';
import { holdSecret } from '../base/redact.ts';
import * as wire from './e2b.wire.ts';
import { EngineError } from './errors.ts';
import { type EngineCall, type EngineConnection, EngineHttp, timedOut } from './http.ts';
import { isPinnedImage } from './names.ts';
import type {
  AllocateContext,
  EngineHealth,
  ListedTemplate,
  RegisterSpec,
  SandboxEngine,
  TemplateRef,
  TemplateState,
} from './port.ts';

/** Settings of the E2B adapter. */
export interface E2BOptions extends EngineConnection {
  /** Default 75 min: E2B itself ends a waiting build after 40 min and a running one after an hour. */
  buildDeadlineMs?: number | undefined;
}

const PAGE = 100;
/** 100,000 templates; more is a server that never ends its list. */
const MAX_PAGES = 1000;
const LIST_PAGE_BYTES = 4 * 1024 * 1024;

/**
 * E2B over its REST API: POST /v3/templates allocates, POST /v2/templates/{id}/builds/{build} starts.
 * One name has one template id, so a repeated allocation never makes a second template.
 * Source: the published openapi.yml of e2b-dev/infra and the contract suite.
 */
export class E2BEngine implements SandboxEngine {
  readonly kind = 'e2b';
  readonly buildDeadlineMs: number;
  readonly #http: EngineHttp;

  constructor(options: E2BOptions) {
    this.buildDeadlineMs = options.buildDeadlineMs ?? 75 * 60_000;
    this.#http = new EngineHttp('e2b', options, (key) => ({ 'x-api-key': key }));
  }

  async health(signal: AbortSignal): Promise<EngineHealth> {
    let reachable = false;
    try {
      await this.#http.send({ method: 'GET', path: '/health', purpose: 'read' }, signal);
      reachable = true;
      await this.#http.send({ method: 'GET', path: '/v2/templates?limit=1', purpose: 'read' }, signal);
      return { reachable, authenticated: true };
    } catch (error) {
      signal.throwIfAborted();
      return { reachable, authenticated: false, message: messageOf(error) };
    }
  }

  async allocate(spec: RegisterSpec, { previous }: AllocateContext, signal: AbortSignal): Promise<TemplateRef> {
    checkSpec(spec);
    const { name, image } = spec;
    const templateId = await this.#idOf(name, signal);
    const detail = templateId === undefined ? undefined : await this.#detail(templateId, signal);
    const buildId = detail && wire.adoptableBuild(detail, previous?.buildId);
    if (detail && buildId) return { templateId: wire.checkedId(detail.templateID), buildId, name, image };

    const body = { name, ...wire.e2bResources(spec.resources) };
    const call: EngineCall = { method: 'POST', path: '/v3/templates', purpose: 'create', body };
    const created = this.#http.parse(call, await this.#http.send(call, signal), wire.createdSchema);
    return { templateId: wire.checkedId(created.templateID), buildId: created.buildID, name, image };
  }

  async start(spec: RegisterSpec, ref: TemplateRef, signal: AbortSignal): Promise<'started' | 'running' | 'absent'> {
    checkSpec(spec);
    if (!wire.isBuildId(ref.buildId)) return 'absent';
    const path = `/v2/templates/${wire.checkedId(ref.templateId)}/builds/${ref.buildId}`;
    const call: EngineCall = { method: 'POST', path, purpose: 'start', body: wire.startBody(spec), accept: [404] };
    try {
      const answer = await this.#http.send(call, signal);
      return answer.status === 404 ? 'absent' : 'started';
    } catch (error) {
      // The code of this refusal has changed between releases, the text has not.
      if (error instanceof EngineError && /not in waiting state/i.test(error.message)) return 'running';
      throw error;
    }
  }

  async poll(ref: TemplateRef, signal: AbortSignal): Promise<TemplateState> {
    if (!wire.isBuildId(ref.buildId)) return { phase: 'Absent', message: 'No build id is recorded.' };
    const base = `/templates/${wire.checkedId(ref.templateId)}/builds/${ref.buildId}`;
    const path = `${base}/status?logsOffset=0&limit=100&level=info`;
    const call: EngineCall = { method: 'GET', path, purpose: 'read', accept: [400, 404] };
    const answer = await this.#http.send(call, signal);
    if (answer.status >= 400) {
      if (answer.status === 404 || /not found/i.test(answer.text)) {
        return { phase: 'Absent', message: 'E2B does not know this build any more.' };
      }
      throw new EngineError('Unknown', 'e2b', `E2B answered 400 to GET ${base}/status`, { httpStatus: 400 });
    }
    const status = this.#http.parse(call, answer, wire.statusSchema);
    if (status.status === 'ready') return this.#proven(ref, signal);
    return wire.stateOf(status, status.status === 'error' ? await this.#lastLog(base, signal) : []);
  }

  async delete(ref: TemplateRef, signal: AbortSignal): Promise<'deleted' | 'absent'> {
    const id = wire.checkedId(ref.templateId);
    const detail = await this.#detail(id, signal);
    if (!detail) return 'absent';
    if (!wire.isNamed(detail, ref.name)) {
      throw new EngineError('Foreign', 'e2b', `The E2B template ${id} does not carry the name ${ref.name}`);
    }
    try {
      const call: EngineCall = { method: 'DELETE', path: `/templates/${id}`, purpose: 'delete', accept: [404] };
      const answer = await this.#http.send(call, signal);
      return answer.status === 404 ? 'absent' : 'deleted';
    } catch (error) {
      if (timedOut(error) && !(await this.exists(id, signal))) return 'deleted';
      throw error;
    }
  }

  async exists(templateId: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#detail(wire.checkedId(templateId), signal)) !== undefined;
  }

  async resolve(idOrAlias: string, signal: AbortSignal): Promise<string | undefined> {
    if (!/^[a-z0-9][a-z0-9_-]*(?:\/[a-z0-9_-]+)?$/.test(idOrAlias) || idOrAlias.length > 128) return undefined;
    const found = await this.#idOf(idOrAlias, signal);
    if (found !== undefined || !wire.isTemplateId(idOrAlias)) return found;
    // 403: a template of another team, which a sandbox may still start from when it is shared or public.
    const call: EngineCall = {
      method: 'GET',
      path: `/templates/${idOrAlias}?limit=1`,
      purpose: 'read',
      accept: [403, 404],
    };
    return (await this.#http.send(call, signal)).status === 404 ? undefined : idOrAlias;
  }

  async list(signal: AbortSignal): Promise<ListedTemplate[]> {
    const rows: ListedTemplate[] = [];
    let next: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const path = `/v2/templates?limit=${PAGE}${next ? `&nextToken=${encodeURIComponent(next)}` : ''}`;
      const call: EngineCall = { method: 'GET', path, purpose: 'read', maxBytes: LIST_PAGE_BYTES };
      const answer = await this.#http.send(call, signal);
      rows.push(...this.#http.parse(call, answer, wire.listSchema).map(wire.listed));
      next = answer.header('x-next-token');
      if (!next) return rows;
    }
    throw new EngineError('Unknown', 'e2b', `The template list of E2B does not end after ${MAX_PAGES} pages`);
  }

  /** None: E2B gives one name one id. */
  async duplicates(_ref: TemplateRef, _held: ReadonlySet<string>, signal: AbortSignal): Promise<TemplateRef[]> {
    signal.throwIfAborted();
    return [];
  }

  /** A finished build counts only when its template carries the ref's name: ids in a status are claims. */
  async #proven(ref: TemplateRef, signal: AbortSignal): Promise<TemplateState> {
    const detail = await this.#detail(ref.templateId, signal);
    if (detail && wire.isNamed(detail, ref.name)) return { phase: 'Ready' };
    return { phase: 'Absent', message: `E2B has no template ${ref.templateId} of the name ${ref.name}.` };
  }

  async #idOf(alias: string, signal: AbortSignal): Promise<string | undefined> {
    const path = `/templates/aliases/${encodeURIComponent(alias)}`;
    const call: EngineCall = { method: 'GET', path, purpose: 'read', accept: [400, 403, 404] };
    const answer = await this.#http.send(call, signal);
    return answer.status === 200 ? this.#http.parse(call, answer, wire.aliasSchema).templateID : undefined;
  }

  async #detail(templateId: string, signal: AbortSignal) {
    const path = `/templates/${wire.checkedId(templateId)}?limit=${PAGE}`;
    const call: EngineCall = { method: 'GET', path, purpose: 'read', accept: [404] };
    const answer = await this.#http.send(call, signal);
    return answer.status === 404 ? undefined : this.#http.parse(call, answer, wire.detailSchema);
  }

  /** The end of a failed build's log; the status shows its beginning only. Best effort: a failure stays a failure without it. */
  async #lastLog(base: string, signal: AbortSignal): Promise<string[]> {
    try {
      const path = `${base}/logs?limit=100&direction=backward`;
      const call: EngineCall = { method: 'GET', path, purpose: 'read', timeoutMs: 10_000 };
      const { logs } = this.#http.parse(call, await this.#http.send(call, signal), wire.logsSchema);
      // Newest first; turned round so that lines of one instant keep their order in the stable sort.
      return wire.logLines(logs.toReversed());
    } catch {
      signal.throwIfAborted();
      return [];
    }
  }
}

function checkSpec(spec: RegisterSpec): void {
  if (spec.registryAuth) holdSecret(spec.registryAuth.password);
  if (isPinnedImage(spec.image)) return;
  throw new EngineError('Invalid', 'e2b', 'An image goes to E2B only as repository@sha256:<digest>');
}
