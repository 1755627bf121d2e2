import { type Policy, PolicyError } from '../base/errors.ts';
import type { Reason } from '../base/reasons.ts';
import { redact } from '../base/redact.ts';
import type { Engine } from '../protocol/types.ts';

/**
 * What an engine's refusal means.
 * - `Auth`: the key is missing, wrong or of another team · `Config`: URL, TLS or route are wrong
 * - `Invalid`: the request itself is refused · `Conflict`: the name or id cannot be used again
 * - `InUse`: sandboxes or a running build hold the template · `Foreign`: the template is not this Skill's
 * - `Quota`: asked to slow down · `Unavailable`: down or server errors · `Unknown`: anything else
 */
export type EngineErrorKind =
  | 'Auth'
  | 'Config'
  | 'Invalid'
  | 'Conflict'
  | 'InUse'
  | 'Foreign'
  | 'Quota'
  | 'Unavailable'
  | 'Unknown';

/** How the operator reacts to each kind: a closed table. */
export const ENGINE_ERRORS: Record<EngineErrorKind, { policy: Policy; reason: Reason; next: string }> = {
  Auth: {
    policy: 'Waiting',
    reason: 'EngineAuthFailed',
    next: "Put a valid key into the engine's Secret; it is read again at the next try.",
  },
  Config: {
    policy: 'Waiting',
    reason: 'EngineConfigInvalid',
    next: 'Correct the URL or the CA bundle of this engine in the operator configuration.',
  },
  Invalid: {
    policy: 'Stalled',
    reason: 'EngineRejected',
    next: "Correct what the engine names: the Dockerfile, or the engine's resources and commands in the operator configuration.",
  },
  Conflict: {
    policy: 'Stalled',
    reason: 'EngineConflict',
    next: 'Remove that template from the engine, or change the Dockerfile so that the version gets a new name.',
  },
  InUse: {
    policy: 'Retry',
    reason: 'TemplateInUse',
    next: 'It is tried again; stop the sandboxes of this template to finish sooner.',
  },
  Foreign: {
    policy: 'Stalled',
    reason: 'TemplateForeign',
    next: 'It is left alone; remove it at the engine by hand if it is not needed.',
  },
  Quota: {
    policy: 'Retry',
    reason: 'EngineBusy',
    next: 'It is tried again; raise the limit of the engine account or lower the concurrent registrations.',
  },
  Unavailable: {
    policy: 'Retry',
    reason: 'EngineUnavailable',
    next: 'It is tried again; check that the engine runs and that the operator can reach it.',
  },
  Unknown: {
    policy: 'Retry',
    reason: 'EngineUnexpectedAnswer',
    next: "It is tried again; if it stays, look at the engine's own log.",
  },
};

/** The name of an engine as people write it. */
export const ENGINE_LABEL: Record<Engine, string> = { cubesandbox: 'CubeSandbox', e2b: 'E2B' };

/** A failed call to an engine: a PolicyError whose kind decides reason and policy. */
export class EngineError extends PolicyError {
  readonly kind: EngineErrorKind;
  readonly engine: Engine;
  /** Status of the HTTP answer; undefined when there was none. */
  readonly httpStatus: number | undefined;

  constructor(
    kind: EngineErrorKind,
    engine: Engine,
    problem: string,
    options: { httpStatus?: number; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    const { policy, reason, next } = ENGINE_ERRORS[kind];
    super(policy, reason, `${problem}. ${next}`, options);
    this.kind = kind;
    this.engine = engine;
    this.httpStatus = options.httpStatus;
  }
}

/** What was asked, as far as the meaning of a refusal depends on it. */
export type Purpose = 'create' | 'start' | 'delete' | 'read';

/** An HTTP refusal, reduced to what decides. */
export interface Refusal {
  engine: Engine;
  purpose: Purpose;
  /** Method and path, for the message: `POST /v3/templates`. */
  call: string;
  status: number;
  /** The engine's own text, untrusted. */
  text: string;
  retryAfterMs?: number | undefined;
}

/** The texts with which CubeSandbox refuses a request on its merits; every other 400 on create may be its database. */
const CUBE_VALIDATION = /is required|source_image_ref:|exposed port|alias|allow_out|\bdns\b/i;

function kindOf400({ engine, purpose, text }: Refusal): EngineErrorKind {
  if (purpose === 'delete') {
    return /cannot delete template|in use|active|running/i.test(text) ? 'InUse' : 'Unknown';
  }
  if (purpose === 'read') return 'Unknown';
  if (engine === 'e2b') return 'Invalid';
  return CUBE_VALIDATION.test(text) ? 'Invalid' : 'Unknown';
}

/** The kind of a refusal; source: engines' published APIs and handlers, see the contract suite. */
export function kindOf(refusal: Refusal): EngineErrorKind {
  const { status, purpose, text } = refusal;
  if (status >= 300 && status < 400) return 'Config';
  switch (status) {
    case 400:
      return kindOf400(refusal);
    case 401:
      return 'Auth';
    case 403:
      return purpose === 'create' && /alias|name/i.test(text) ? 'Conflict' : 'Auth';
    case 404:
      return purpose === 'create' && /deleted/i.test(text) ? 'Conflict' : 'Config';
    case 409:
      return purpose === 'delete' ? 'InUse' : 'Conflict';
    case 413:
    case 422:
      return 'Invalid';
    case 429:
      return 'Quota';
    default:
      return status === 408 || status >= 500 ? 'Unavailable' : 'Unknown';
  }
}

const DEFAULT_QUOTA_DELAY_MS = 30_000;
const MAX_RETRY_AFTER_MS = 15 * 60_000;
const PROBLEM: Partial<Record<EngineErrorKind, string>> = {
  Unavailable: 'engine unavailable: ',
  Quota: 'engine busy: ',
};

/** The error of a refusal, with the engine's own text cut and cleaned. */
export function refusalError(refusal: Refusal): EngineError {
  const kind = kindOf(refusal);
  const text = tidy(refusal.text, 300);
  const problem = `${PROBLEM[kind] ?? ''}${ENGINE_LABEL[refusal.engine]} answered ${refusal.status} to ${refusal.call}${text ? `: ${text}` : ''}`;
  const wait = refusal.retryAfterMs ?? (kind === 'Quota' ? DEFAULT_QUOTA_DELAY_MS : undefined);
  return new EngineError(kind, refusal.engine, trimStop(problem), {
    httpStatus: refusal.status,
    ...(wait === undefined ? {} : { retryAfterMs: Math.min(wait, MAX_RETRY_AFTER_MS) }),
  });
}

/** Milliseconds that a Retry-After header asks for (seconds or HTTP date), undefined when it says nothing usable. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  const value = header.trim();
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  // Date.parse takes almost anything; an HTTP date names its day and its zone.
  const at = /^[A-Z][a-z]+,? .* GMT$/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

/** The human text of an error body: its `message`, `error` or `detail`, else the body itself. */
export function bodyText(body: string): string {
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed === 'object' && parsed !== null) {
      for (const key of ['message', 'error', 'detail'] as const) {
        const value = (parsed as Record<string, unknown>)[key];
        if (typeof value === 'string' && value !== '') return value;
      }
    }
  } catch {
    // Not JSON: a proxy's page or axum's plain text.
  }
  return body;
}

/** Engine text on one line: secrets masked before the cut, so that no half of one survives it; no control characters; at most `max` characters. */
export function tidy(text: string, max: number): string {
  const line = redact(text)
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

/** The last `max` bytes of log lines: secrets masked, control characters removed, whole lines where possible. */
export function logTail(lines: readonly string[], max = 2048): string {
  const text = lines.map((line) => tidy(line, 1000)).join('\n');
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return text;
  const cut = bytes
    .subarray(bytes.length - max)
    .toString()
    .replace(/^\uFFFD+/, '');
  const newline = cut.indexOf('\n');
  return newline < 0 ? cut : cut.slice(newline + 1);
}

const trimStop = (text: string) => text.replace(/[.\s]+$/, '');
