import type { Reason } from './reasons.ts';
import { redact } from './redact.ts';

/**
 * What the controller does after an error.
 * - `Stalled`: the author or the spec must change; re-checked at each interval only.
 * - `Waiting`: fixed outside (Secret, host key, bucket, ref); re-checked at min(60 s, interval) or `retryAfterMs`.
 * - `Retry`: transient; per-object exponential back-off.
 */
export type Policy = 'Stalled' | 'Waiting' | 'Retry';

interface PolicyErrorOptions {
  /** Milliseconds after which the other side wants to be asked again. */
  retryAfterMs?: number;
  cause?: unknown;
}

/** An error that carries its reason from the catalogue and the policy of the controller; its message is redacted. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';
  readonly policy: Policy;
  readonly reason: Reason;
  readonly retryAfterMs: number | undefined;

  constructor(policy: Policy, reason: Reason, message: string, options: PolicyErrorOptions = {}) {
    super(redact(message), options.cause === undefined ? undefined : { cause: options.cause });
    this.policy = policy;
    this.reason = reason;
    this.retryAfterMs = options.retryAfterMs;
  }
}

export const stalled = (reason: Reason, message: string, options?: PolicyErrorOptions) =>
  new PolicyError('Stalled', reason, message, options);
export const waiting = (reason: Reason, message: string, options?: PolicyErrorOptions) =>
  new PolicyError('Waiting', reason, message, options);
export const retry = (reason: Reason, message: string, options?: PolicyErrorOptions) =>
  new PolicyError('Retry', reason, message, options);

/** The redacted one-line message of anything thrown. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return redact(text).replaceAll(/\s+/g, ' ').trim();
}

/** True when the error is the abort of the caller's own signal rather than a failure. */
export function isAbort(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && (error === signal.reason || (error instanceof Error && error.name === 'AbortError'));
}
