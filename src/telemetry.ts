import type { Clock } from './base/clock.ts';
import { PolicyError } from './base/errors.ts';
import type { Metrics } from './base/metrics.ts';
import type { Observe, Operation } from './base/observe.ts';

/** Why a call failed, as a label: a reason of the catalogue, or that nobody wanted its answer any more. */
function reasonOf(error: unknown): string {
  if (error instanceof PolicyError) return error.reason;
  return error instanceof Error && error.name === 'AbortError' ? 'Aborted' : 'InternalError';
}

/** Counts, times and classes every call to Git, the store and the engines. */
export const measured =
  (metrics: Metrics, clock: Clock): Observe =>
  async (operation, fn) => {
    const started = clock.monotonic();
    try {
      return await fn();
    } catch (error) {
      failed(metrics, operation, reasonOf(error));
      throw error;
    } finally {
      ended(metrics, operation, (clock.monotonic() - started) / 1000);
    }
  };

function failed(metrics: Metrics, { system, name: operation, target }: Operation, reason: string): void {
  if (system === 'git') metrics.add('skill_operator_git_errors_total', { operation, reason });
  else if (system === 'store') metrics.add('skill_operator_store_errors_total', { operation, reason });
  else metrics.add('skill_operator_engine_errors_total', { engine: target ?? '', operation, reason });
}

function ended(metrics: Metrics, { system, name: operation, target }: Operation, seconds: number): void {
  if (system === 'git') {
    metrics.add('skill_operator_git_requests_total', { operation });
    metrics.observe('skill_operator_git_request_duration_seconds', { operation }, seconds);
  } else if (system === 'store') {
    // Its requests are counted on the wire.
    metrics.observe('skill_operator_store_request_duration_seconds', { operation }, seconds);
  } else {
    const labels = { engine: target ?? '', operation };
    metrics.add('skill_operator_engine_requests_total', labels);
    metrics.observe('skill_operator_engine_request_duration_seconds', labels, seconds);
  }
}
