import type { Clock } from './base/clock.ts';
import { PolicyError } from './base/errors.ts';
import type { Logger } from './base/log.ts';
import type { Metrics } from './base/metrics.ts';
import type { Observe, Operation } from './base/observe.ts';
import { holdSecret } from './base/redact.ts';
import { createTracer, noTracing, type Tracer } from './base/trace.ts';
import type { Config } from './config.ts';
import { OtlpExporter } from './otlp.ts';

/** Why a call failed, as a label: a reason of the catalogue, or that nobody wanted its answer any more. */
function reasonOf(error: unknown): string {
  if (error instanceof PolicyError) return error.reason;
  return error instanceof Error && error.name === 'AbortError' ? 'Aborted' : 'InternalError';
}

/** Counts, times, classes and traces every call to Git, the store and the engines. */
export const measured =
  (metrics: Metrics, clock: Clock, tracer: Tracer = noTracing): Observe =>
  async (operation, fn) => {
    const started = clock.monotonic();
    let reason: string | undefined;
    try {
      return await fn();
    } catch (error) {
      reason = reasonOf(error);
      failed(metrics, operation, reason);
      throw error;
    } finally {
      const seconds = (clock.monotonic() - started) / 1000;
      ended(metrics, operation, seconds);
      const { system, name, target } = operation;
      tracer.record(`${system} ${name}`, target === undefined ? {} : { engine: target }, seconds, reason);
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

/** `a=b,c=d` as headers, the form of OTEL_EXPORTER_OTLP_HEADERS: values may be URL-encoded. */
function headersOf(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const pair of text.split(',')) {
    const at = pair.indexOf('=');
    if (at < 1) continue;
    const value = decoded(pair.slice(at + 1).trim());
    holdSecret(value);
    headers[pair.slice(0, at).trim().toLowerCase()] = value;
  }
  return headers;
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** A tracer to the collector of the settings; without one it costs nothing. `close` sends what is left. */
export function tracing(
  { tracing: settings, operatorNamespace }: Pick<Config, 'tracing' | 'operatorNamespace'>,
  parts: { version: string; identity: string; metrics: Metrics; clock: Clock; logger: Logger },
): { tracer: Tracer; close(): Promise<void> } {
  if (!settings) return { tracer: noTracing, close: () => Promise.resolve() };
  const { version, identity, metrics, clock, logger } = parts;
  const exporter = new OtlpExporter({
    endpoint: settings.endpoint,
    headers: headersOf(settings.headers ?? ''),
    resource: {
      'service.name': 'skill-operator',
      'service.version': version,
      'service.namespace': operatorNamespace,
      'service.instance.id': identity,
    },
    clock,
    logger,
    count: (result, spans) => metrics.add('skill_operator_spans_total', { result }, spans),
  });
  const tracer = createTracer({ clock, take: exporter.take, reasonOf, ratio: settings.sampleRatio });
  return { tracer, close: () => exporter.close() };
}
