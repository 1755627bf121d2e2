import type { Policy } from '../base/errors.ts';
import type { Reason } from '../base/reasons.ts';
import type { Engine } from '../protocol/types.ts';

/** What one sandbox of a template gets; adapters round up to what their engine accepts. */
export interface Resources {
  /** Thousandths of a CPU. */
  cpuMillis: number;
  /** MiB of memory. */
  memoryMiB: number;
  /** MiB of writable disk; CubeSandbox only, at least 2048. */
  writableLayerMiB?: number | undefined;
}

/** The pull credential that an engine needs to read the image; never logged, never in a status. */
export interface RegistryAuth {
  username: string;
  password: string;
}

/** The operator's settings of one engine that shape a template; their hash is part of the template's name. */
export interface TemplateSettings {
  resources: Resources;
  /** E2B only: run when a sandbox is prepared, since E2B ignores ENTRYPOINT and CMD. */
  startCommand?: string | undefined;
  /** E2B only: succeeds once the start command is ready. */
  readyCommand?: string | undefined;
}

/** A template to register: the same spec always has the same name and content. */
export interface RegisterSpec extends TemplateSettings {
  /** From `templateName()`. */
  name: string;
  /** `repository@sha256:<64 hex>`; anything else is refused as Invalid. */
  image: string;
  registryAuth?: RegistryAuth | undefined;
}

/** Names one registration; a status keeps it, so that any later process can go on. */
export interface TemplateRef {
  /** The engine's own id, the only thing that a status shows and a sandbox starts from. */
  templateId: string;
  /** E2B build id or CubeSandbox job id; empty when the engine gave none. */
  buildId: string;
  /** The name and the image that this Skill derives; they prove that the template is its own. */
  name: string;
  image: string;
}

/** Why an engine could not make a template, ready for a condition. */
export interface BuildFailure {
  reason: Reason;
  policy: Policy;
  message: string;
  /** The end of the engine's log, at most 2 KiB, cleaned; empty when there is none. */
  logTail: string;
}

/**
 * Where a registration stands.
 * - `Absent`: the engine no longer has it, or a newer build took its place: allocate again.
 * - `Allocated`: it has an id and waits for `start`.
 * - `Building`: also every state that this release does not know.
 * - `Degraded`: usable, but not on every node of the engine.
 */
export type TemplateState =
  | { phase: 'Absent'; message: string }
  | { phase: 'Allocated' }
  | { phase: 'Building'; progress?: number | undefined; message?: string | undefined }
  | { phase: 'Ready' }
  | { phase: 'Degraded'; message: string }
  | { phase: 'Failed'; failure: BuildFailure };

/** One row of an engine's list, as far as the engine tells. */
export interface ListedTemplate {
  templateId: string;
  /** Names without team prefix and tag. */
  names: readonly string[];
  /** CubeSandbox only: the image reference that it was made from. */
  image?: string | undefined;
  /** The engine's own word. */
  status: string;
}

/** What a cheap probe of an engine found. */
export interface EngineHealth {
  reachable: boolean;
  authenticated: boolean;
  /** Present unless both are true: what is wrong and what to do. */
  message?: string;
}

/** What `allocate` must know of the Skill's own status. */
export interface AllocateContext {
  /** The ids that any slot or ledger entry already holds: never adopted, never removed. */
  held: ReadonlySet<string>;
  /** The ref whose last poll was `Failed` or `Absent`: never adopted again, removed first where one name allows one template. */
  previous?: TemplateRef | undefined;
}

/**
 * Registers, watches and removes templates of one sandbox engine.
 *
 * Every method is one idempotent step, so that a controller drives it from its status alone and may die at any await:
 * `allocate` → persist the ref → `poll` → (`Allocated`: `start`) → `poll` … → `Ready`; `advance()` in advance.ts does just that.
 * A template that already carries the spec's name is adopted, never made twice.
 * Errors are `EngineError`s (errors.ts). Every call has its own deadline and obeys `signal`.
 */
export interface SandboxEngine {
  readonly kind: Engine;
  /** From the first build call to `EngineStuck`, in milliseconds; above the engine's own limits. */
  readonly buildDeadlineMs: number;
  /** Reachable, and the key accepted; never throws but for the caller's abort. */
  health(signal: AbortSignal): Promise<EngineHealth>;
  /** Adopts the template of that name or asks the engine for a new id. Persist the answer before any other step. */
  allocate(spec: RegisterSpec, context: AllocateContext, signal: AbortSignal): Promise<TemplateRef>;
  /** Starts an `Allocated` build; `running` when somebody did already, `absent` when the id is gone. */
  start(spec: RegisterSpec, ref: TemplateRef, signal: AbortSignal): Promise<'started' | 'running' | 'absent'>;
  /** Where it stands; unknown states of the engine are `Building`. */
  poll(ref: TemplateRef, signal: AbortSignal): Promise<TemplateState>;
  /** Removes a template after proof that it is the ref's own (`Foreign` otherwise); `InUse` while sandboxes run. */
  delete(ref: TemplateRef, signal: AbortSignal): Promise<'deleted' | 'absent'>;
  /** Whether the engine still knows the id. */
  exists(templateId: string, signal: AbortSignal): Promise<boolean>;
  /** The id behind an id or alias of the platform map; undefined when the engine knows neither. */
  resolve(idOrAlias: string, signal: AbortSignal): Promise<string | undefined>;
  /** All templates of this account, complete or an error; for the periodic check and the sweep. */
  list(signal: AbortSignal): Promise<ListedTemplate[]>;
  /**
   * Other templates of the same registration, left by two writers at once, that no slot holds.
   * Ask before promoting and retire them; empty on engines where a name has one id.
   */
  duplicates(ref: TemplateRef, held: ReadonlySet<string>, signal: AbortSignal): Promise<TemplateRef[]>;
}
