import { messageOf } from '../base/errors.ts';
import { holdSecret } from '../base/redact.ts';
import * as wire from './cubesandbox.wire.ts';
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

/** Settings of the CubeSandbox adapter. */
export interface CubeSandboxOptions extends EngineConnection, Partial<wire.CreateSettings> {
  /** Default 60 min. */
  buildDeadlineMs?: number | undefined;
  /** Default 250 s: the server itself takes up to 240 s. */
  deleteTimeoutMs?: number | undefined;
}

const LIST_BYTES = 32 * 1024 * 1024;

/**
 * CubeSandbox over CubeAPI: one POST allocates and starts.
 * The engine makes a new template on every POST, so each allocation first looks for one that carries this name or image.
 * Source: the published openapi.yml of CubeSandbox and the contract suite.
 */
export class CubeSandboxEngine implements SandboxEngine {
  readonly kind = 'cubesandbox';
  readonly buildDeadlineMs: number;
  readonly #http: EngineHttp;
  readonly #settings: wire.CreateSettings;
  readonly #deleteTimeoutMs: number;

  constructor(options: CubeSandboxOptions) {
    this.buildDeadlineMs = options.buildDeadlineMs ?? 60 * 60_000;
    this.#deleteTimeoutMs = options.deleteTimeoutMs ?? 250_000;
    this.#settings = {
      withCubeCA: options.withCubeCA ?? true,
      plainHttpRegistry: options.plainHttpRegistry ?? false,
    };
    this.#http = new EngineHttp('cubesandbox', options, (key) => ({ authorization: `Bearer ${key}` }));
  }

  /** `/health` is static; only the list tells whether the key counts and CubeMaster runs. */
  async health(signal: AbortSignal): Promise<EngineHealth> {
    let reachable = false;
    try {
      await this.#http.send({ method: 'GET', path: '/health', purpose: 'read' }, signal);
      reachable = true;
      await this.#rows(signal);
      return { reachable, authenticated: true };
    } catch (error) {
      signal.throwIfAborted();
      const masterDown = error instanceof EngineError && error.kind === 'Unavailable';
      return { reachable: reachable && !masterDown, authenticated: false, message: messageOf(error) };
    }
  }

  async allocate(spec: RegisterSpec, context: AllocateContext, signal: AbortSignal): Promise<TemplateRef> {
    checkSpec(spec);
    const plan = wire.planAllocation(await this.#rows(signal), spec, context);
    // Before the POST: a failed leftover keeps the name's place, and a crash here only repeats the removal.
    for (const row of plan.remove) await this.#remove(row.templateID, signal);
    if (plan.adopt) return refOf(spec, plan.adopt);
    const body = wire.createBody(spec, this.#settings);
    const call: EngineCall = { method: 'POST', path: '/templates', purpose: 'create', body };
    const job = this.#http.parse(call, await this.#http.send(call, signal), wire.jobSchema);
    if (job.templateID !== '') return refOf(spec, { templateID: wire.checkedId(job.templateID), jobID: job.jobID });

    // CubeMaster answered without a job: whether it made one shows only in the list.
    const { adopt } = wire.planAllocation(await this.#rows(signal), spec, context);
    if (adopt) return refOf(spec, adopt);
    throw new EngineError('Unknown', 'cubesandbox', 'CubeSandbox accepted the template but gave it no id');
  }

  /** Nothing to start: a template of CubeSandbox builds from its allocation on. */
  async start(_spec: RegisterSpec, ref: TemplateRef, signal: AbortSignal): Promise<'running' | 'absent'> {
    return (await this.exists(ref.templateId, signal)) ? 'running' : 'absent';
  }

  async poll(ref: TemplateRef, signal: AbortSignal): Promise<TemplateState> {
    const row = await this.#detail(wire.checkedId(ref.templateId), signal);
    if (!row) return { phase: 'Absent', message: `CubeSandbox does not know ${ref.templateId} any more.` };
    const state = wire.stateOf(row, ref);
    if (state.phase === 'Building' || state.phase === 'Failed') {
      return wire.stateOf(row, ref, await this.#build(ref, signal));
    }
    // Ids in a status are claims: without its name a finished template is proven by its image, which only the list shows.
    const unproven = (state.phase === 'Ready' || state.phase === 'Degraded') && !wire.isOwn(row, ref);
    if (!unproven || (await this.#ownRow(ref, signal))) return state;
    return { phase: 'Absent', message: `CubeSandbox has no template ${ref.templateId} of this Skill's name or image.` };
  }

  async delete(ref: TemplateRef, signal: AbortSignal): Promise<'deleted' | 'absent'> {
    const id = wire.checkedId(ref.templateId);
    const detail = await this.#detail(id, signal);
    if (!detail) return 'absent';
    // The detail has no image; a template that never got its name is proven by the list.
    if (!wire.isOwn(detail, ref) && !(await this.#ownRow(ref, signal))) {
      throw new EngineError(
        'Foreign',
        'cubesandbox',
        `${id} carries neither the name ${ref.name} nor this Skill's image`,
      );
    }
    return this.#remove(id, signal);
  }

  async exists(templateId: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#detail(wire.checkedId(templateId), signal)) !== undefined;
  }

  async resolve(idOrAlias: string, signal: AbortSignal): Promise<string | undefined> {
    if (!/^[A-Za-z0-9-]{1,128}$/.test(idOrAlias)) return undefined;
    return (await this.#detail(idOrAlias, signal))?.templateID;
  }

  async list(signal: AbortSignal): Promise<ListedTemplate[]> {
    return (await this.#rows(signal)).filter((row) => wire.isTemplateId(row.templateID)).map(wire.listed);
  }

  async duplicates(ref: TemplateRef, held: ReadonlySet<string>, signal: AbortSignal): Promise<TemplateRef[]> {
    return wire.duplicatesOf(await this.#rows(signal), ref, held).map((row) => refOf(ref, row));
  }

  async #rows(signal: AbortSignal): Promise<wire.CubeTemplate[]> {
    const call: EngineCall = { method: 'GET', path: '/templates', purpose: 'read', maxBytes: LIST_BYTES };
    return this.#http.parse(call, await this.#http.send(call, signal), wire.listSchema);
  }

  async #ownRow(ref: TemplateRef, signal: AbortSignal): Promise<boolean> {
    return (await this.#rows(signal)).some((row) => row.templateID === ref.templateId && wire.isOwn(row, ref));
  }

  async #detail(idOrAlias: string, signal: AbortSignal): Promise<wire.CubeTemplate | undefined> {
    const call: EngineCall = { method: 'GET', path: `/templates/${idOrAlias}`, purpose: 'read', accept: [404] };
    const answer = await this.#http.send(call, signal);
    return answer.status === 404 ? undefined : this.#http.parse(call, answer, wire.templateSchema);
  }

  /** Progress and phase of a job; a job that the engine does not know answers 500 and means nothing by itself. */
  async #build(ref: TemplateRef, signal: AbortSignal) {
    if (!/^[A-Za-z0-9-]{1,128}$/.test(ref.buildId)) return undefined;
    const path = `/templates/${wire.checkedId(ref.templateId)}/builds/${ref.buildId}/status`;
    const call: EngineCall = { method: 'GET', path, purpose: 'read', timeoutMs: 10_000 };
    try {
      return this.#http.parse(call, await this.#http.send(call, signal), wire.buildSchema);
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }

  async #remove(id: string, signal: AbortSignal): Promise<'deleted' | 'absent'> {
    const path = `/templates/${id}`;
    const timeoutMs = this.#deleteTimeoutMs;
    const call: EngineCall = { method: 'DELETE', path, purpose: 'delete', timeoutMs, accept: [404] };
    try {
      const { status } = await this.#http.send(call, signal);
      if (status !== 404) return 'deleted';
    } catch (error) {
      if (timedOut(error) && !(await this.exists(id, signal))) return 'deleted';
      throw error;
    }
    // 404 also means that the engine lost what it needs to clean up.
    if (!(await this.exists(id, signal))) return 'absent';
    throw new EngineError('Unknown', 'cubesandbox', `CubeSandbox cannot remove ${id}: it says 404 but still lists it`);
  }
}

const refOf = (of: Pick<TemplateRef, 'name' | 'image'>, row: { templateID: string; jobID: string }): TemplateRef => ({
  templateId: row.templateID,
  buildId: row.jobID,
  name: of.name,
  image: of.image,
});

function checkSpec(spec: RegisterSpec): void {
  if (spec.registryAuth) holdSecret(spec.registryAuth.password);
  if (isPinnedImage(spec.image)) return;
  throw new EngineError('Invalid', 'cubesandbox', 'An image goes to CubeSandbox only as repository@sha256:<digest>');
}
