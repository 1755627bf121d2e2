import type { Reason } from '../base/reasons.ts';

/**
 * What went wrong with an attempt, as far as the reaction differs.
 * - `Setup`: the cluster refuses the pod, or an image, volume or Secret of the build is not there; no author code ran
 * - `Capacity`: no node has room · `Infra`: node, network or a registry failed · `Context`: the store refused or lost the input
 * - `Push`: the registry refuses the push credential · `Memory`, `Disk`, `Timeout`: a limit of the build was reached
 * - `User`: the Dockerfile cannot be built as it is, or what it builds cannot be used
 */
export type FailureClass = 'Setup' | 'Capacity' | 'Infra' | 'Context' | 'Push' | 'Memory' | 'Disk' | 'Timeout' | 'User';

/** When an attempt of a class is followed by another. */
interface RetryRule {
  /** Attempts at most, the first included; a log can fake any text, so every class in which author code ran has a small number. */
  attempts: number;
  firstMs: number;
  maxMs: number;
  /** Before the next attempt registry, credential and bucket are checked; as long as they fail nothing is built. */
  preflight: boolean;
}

const MINUTE = 60_000;

/** The closed table of reactions; the delay doubles from attempt to attempt. */
export const RETRY_RULES: Readonly<Record<FailureClass, RetryRule>> = {
  Setup: { attempts: Number.POSITIVE_INFINITY, firstMs: 5 * MINUTE, maxMs: 5 * MINUTE, preflight: true },
  Capacity: { attempts: Number.POSITIVE_INFINITY, firstMs: MINUTE, maxMs: 15 * MINUTE, preflight: false },
  Infra: { attempts: 5, firstMs: 30_000, maxMs: 15 * MINUTE, preflight: true },
  Context: { attempts: 5, firstMs: 5000, maxMs: 15 * MINUTE, preflight: true },
  Push: { attempts: 5, firstMs: MINUTE, maxMs: 60 * MINUTE, preflight: true },
  Memory: { attempts: 2, firstMs: 30_000, maxMs: 30_000, preflight: false },
  Timeout: { attempts: 2, firstMs: 30_000, maxMs: 30_000, preflight: false },
  Disk: { attempts: 1, firstMs: 0, maxMs: 0, preflight: false },
  User: { attempts: 1, firstMs: 0, maxMs: 0, preflight: false },
};

/** Milliseconds from the end of attempt number `attempt` (from 1) to the next one; undefined: there is none. */
export function retryAfterMs(failure: FailureClass, attempt: number): number | undefined {
  const { attempts, firstMs, maxMs } = RETRY_RULES[failure];
  if (attempt >= attempts) return undefined;
  return Math.min(firstMs * 2 ** Math.min(Math.max(attempt, 1) - 1, 30), maxMs);
}

/** Why an attempt failed. */
export interface Failure {
  class: FailureClass;
  reason: Reason;
  /** What is wrong and what to do; redacted by whoever writes it. */
  message: string;
}
