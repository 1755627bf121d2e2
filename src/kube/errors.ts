import { DeadlineExceeded } from '../base/deadline.ts';
import { PolicyError, retry, stalled, waiting } from '../base/errors.ts';
import { redact } from '../base/redact.ts';

/** One entry of `details.causes` of a metav1.Status. */
export interface KubeCause {
  reason?: string;
  message?: string;
  field?: string;
}

interface KubeErrorOptions {
  retryAfterMs?: number;
  causes?: KubeCause[];
  cause?: unknown;
}

/** Longest message kept of an answer; the API server echoes whole objects in some of its refusals. */
const MAX_MESSAGE = 1024;
/** A wait that a broken proxy asks for must not park an object for days. */
const MAX_RETRY_AFTER_MS = 15 * 60_000;

/**
 * A call to the API server that did not succeed.
 * `code` is the HTTP status, or 0 when no answer could be read; `reason` is the Status reason (`Conflict`, `Expired`, …)
 * or one of `ResourceNotFound` (CRD not installed), `Timeout`, `Network`, `BodyTooLarge`, `BadBody`. The message is redacted and names verb and object.
 */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  readonly code: number;
  readonly reason: string;
  /** Milliseconds after which the server wants to be asked again. */
  readonly retryAfterMs: number | undefined;
  readonly causes: readonly KubeCause[];

  constructor(code: number, reason: string, message: string, options: KubeErrorOptions = {}) {
    super(redact(message).slice(0, MAX_MESSAGE), options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.reason = reason;
    this.retryAfterMs = options.retryAfterMs;
    this.causes = options.causes ?? [];
  }
}

/** The leader lost its lease: nothing may be written any more, and the process must end (invariant I11). */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/** True for a LeaseLost, and for what was made of one on its way up. */
export const isLeaseLost = (error: unknown): boolean =>
  error instanceof LeaseLost || (error instanceof Error && error.cause instanceof LeaseLost);

/** True when the object does not exist; false when the server does not know the resource at all. */
export const isNotFound = (error: unknown): boolean => error instanceof KubeError && error.reason === 'NotFound';

/** True when the API server answered with that HTTP status. */
export const hasCode = (error: unknown, code: number): boolean => error instanceof KubeError && error.code === code;

/** Parses a Retry-After header: whole seconds or an HTTP date. undefined when absent or unusable. */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  if (!header) return undefined;
  if (/^\d{1,6}$/.test(header)) return Number(header) * 1000;
  // Date.parse takes nearly anything for a date; the header's only other form ends in GMT.
  const at = header.endsWith('GMT') ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

interface Status {
  code?: number;
  reason?: string;
  message?: string;
  details?: { name?: string; causes?: KubeCause[]; retryAfterSeconds?: number };
}

/**
 * Builds the error of a metav1.Status (the body of a refusal, or an ERROR frame of a watch).
 * `subject` is "patch skills team-a/pdf"; a body that is no Status (a proxy's HTML) leaves only the code.
 */
export function fromStatus(subject: string, code: number, body: unknown, retryAfterMs?: number): KubeError {
  const status: Status = typeof body === 'object' && body !== null ? body : {};
  const actual = typeof status.code === 'number' && status.code > 0 ? status.code : code;
  const reason = reasonOf(status, actual);
  const text = typeof status.message === 'string' && status.message !== '' ? status.message : 'no Status in the answer';
  const seconds = status.details?.retryAfterSeconds;
  const wait = retryAfterMs ?? (typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : undefined);
  const retry = wait === undefined ? {} : { retryAfterMs: Math.min(wait, MAX_RETRY_AFTER_MS) };
  const causes = Array.isArray(status.details?.causes) ? status.details.causes.slice(0, 20) : [];
  return new KubeError(actual, reason, `${subject}: ${actual} ${reason}: ${text}`, {
    causes,
    ...retry,
  });
}

function reasonOf(status: Status, code: number): string {
  // "No such object" names it; "no such resource" (a CRD that is not installed) does not, and must never read as absent.
  if (code === 404 && !status.details?.name) return 'ResourceNotFound';
  return typeof status.reason === 'string' && status.reason !== '' ? status.reason : `HTTP${code}`;
}

/** Wraps what the transport threw: a deadline becomes `Timeout`, the rest `Network`. KubeError and LeaseLost pass. */
export function fromTransport(subject: string, error: unknown): KubeError | LeaseLost {
  if (error instanceof KubeError || error instanceof LeaseLost) return error;
  const text = error instanceof Error ? error.message || error.name : String(error);
  const reason = error instanceof DeadlineExceeded ? 'Timeout' : 'Network';
  return new KubeError(0, reason, `${subject}: ${text}`, { cause: error });
}

/**
 * The policy of a failed call, for the controller and the conditions.
 * PolicyErrors pass unchanged; anything that is no KubeError is a defect and becomes Retry `InternalError`.
 */
export function toPolicyError(error: unknown): PolicyError {
  if (error instanceof PolicyError) return error;
  if (error instanceof LeaseLost) return retry('ApiUnavailable', error.message, { cause: error });
  if (!(error instanceof KubeError)) {
    const text = error instanceof Error ? error.message : String(error);
    return retry('InternalError', `${text}. This is a defect of the operator; the log holds the stack.`, {
      cause: error,
    });
  }
  const options = { cause: error, ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }) };
  switch (error.code) {
    case 401:
      return retry('Forbidden', `${error.message}. ${TOKEN_HINT}`, options);
    case 403:
      return waiting('Forbidden', `${error.message}. ${forbiddenHint(error)}`, options);
    case 404:
      if (error.reason === 'ResourceNotFound')
        return waiting('ApiUnavailable', `${error.message}. ${CRD_HINT}`, options);
      return retry('Conflict', `${error.message}. The object is read again; nothing to do.`, options);
    case 409:
    case 410:
      return retry('Conflict', `${error.message}. The object is read again; nothing to do.`, options);
    case 400:
    case 413:
    case 415:
    case 422:
      return stalled(
        'ApplyRejected',
        `${error.message}. Check that the installed CRDs belong to this release and that no admission policy forbids it.`,
        options,
      );
    default:
      return retry('ApiUnavailable', `${error.message}. The operator tries again by itself.`, options);
  }
}

const TOKEN_HINT = "Check the operator's ServiceAccount token or kubeconfig user; the operator tries again by itself.";
const CRD_HINT = 'Install the CRDs of this release: kubectl apply --server-side -f crds/';

function forbiddenHint(error: KubeError): string {
  if (error.causes.some((c) => c.reason === 'NamespaceTerminating'))
    return 'The namespace is being deleted; nothing to do.';
  return "Compare the ClusterRole of the operator's ServiceAccount with the one in the chart and apply it.";
}
