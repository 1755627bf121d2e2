import { request } from 'undici';
import type { Clock } from './base/clock.ts';
import { withDeadline } from './base/deadline.ts';
import { messageOf } from './base/errors.ts';
import type { Logger } from './base/log.ts';
import { redact } from './base/redact.ts';
import type { Span, SpanAttributes } from './base/trace.ts';

/** Sends spans to a collector by OTLP over HTTP with JSON (opentelemetry-proto v1). What cannot be sent is dropped: traces are a help, no record. */

export interface OtlpOptions {
  /** Base URL of the collector; `/v1/traces` is put behind it. */
  endpoint: string;
  headers: Readonly<Record<string, string>>;
  /** Who sends: `service.name` and the like. */
  resource: SpanAttributes;
  clock: Clock;
  logger: Logger;
  /** Told how many spans were sent or dropped. */
  count: (result: 'sent' | 'dropped', spans: number) => void;
}

const BATCH = 512;
/** Spans in memory; about 1 MiB. */
const MAX_HELD = 4096;
const EVERY_MS = 5_000;
/** Two of them fit into the time that a pod has to stop. */
const DEADLINE_MS = 5_000;
/** Between two log lines about a collector that does not answer. */
const QUIET_MS = 60_000;

const attributesOf = (attributes: SpanAttributes) =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(Math.round(value)) } : { stringValue: value },
  }));

/** Nanoseconds as text: a double has not enough digits. */
const nanos = (ms: number): string => String(BigInt(Math.round(ms * 1000)) * 1000n);

const KIND = { internal: 1, client: 3 } as const;
const STATUS = { unset: 0, error: 2 } as const;

const wire = (span: Span) => ({
  traceId: span.traceId,
  spanId: span.spanId,
  ...(span.parentId === undefined ? {} : { parentSpanId: span.parentId }),
  name: span.name,
  kind: span.parentId === undefined ? KIND.internal : KIND.client,
  startTimeUnixNano: nanos(span.start),
  endTimeUnixNano: nanos(span.end),
  attributes: attributesOf(span.attributes),
  status: span.error === undefined ? { code: STATUS.unset } : { code: STATUS.error, message: span.error },
});

/** The body of one request. */
const otlpBody = (resource: SpanAttributes, spans: readonly Span[]): string =>
  redact(
    JSON.stringify({
      resourceSpans: [
        {
          resource: { attributes: attributesOf(resource) },
          scopeSpans: [{ scope: { name: 'skill-operator' }, spans: spans.map(wire) }],
        },
      ],
    }),
  );

/** Holds spans and sends them in batches, every five seconds or when many have come. */
export class OtlpExporter {
  readonly #options: OtlpOptions;
  readonly #url: string;
  #held: Span[] = [];
  #sending: Promise<void> | undefined;
  #cancel: (() => void) | undefined;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(options: OtlpOptions) {
    this.#options = options;
    this.#url = `${options.endpoint.replace(/\/+$/, '')}/v1/traces`;
  }

  /** Takes a finished span; never throws and never waits. */
  readonly take = (span: Span): void => {
    if (this.#held.length >= MAX_HELD) {
      this.#options.count('dropped', 1);
      return;
    }
    this.#held.push(span);
    if (this.#held.length >= BATCH) this.#send();
    else this.#cancel ??= this.#options.clock.after(EVERY_MS, () => this.#send());
  };

  /** Sends what is left, within the deadline of one request. */
  async close(): Promise<void> {
    await this.#sending;
    this.#send();
    await this.#sending;
    this.#cancel?.();
  }

  #send(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#sending || this.#held.length === 0) return;
    const batch = this.#held.splice(0, BATCH);
    this.#sending = this.#post(batch).finally(() => {
      this.#sending = undefined;
      if (this.#held.length > 0) this.#cancel ??= this.#options.clock.after(EVERY_MS, () => this.#send());
    });
  }

  async #post(batch: readonly Span[]): Promise<void> {
    const { headers, resource, count } = this.#options;
    try {
      await withDeadline(new AbortController().signal, DEADLINE_MS, async (signal) => {
        const body = otlpBody(resource, batch);
        const all = { ...headers, 'content-type': 'application/json' };
        const answer = await request(this.#url, { method: 'POST', headers: all, body, signal });
        await answer.body.dump();
        if (answer.statusCode >= 300) throw new Error(`it answers ${answer.statusCode}`);
      });
      count('sent', batch.length);
    } catch (error) {
      count('dropped', batch.length);
      this.#tell(error);
    }
  }

  #tell(error: unknown): void {
    const now = this.#options.clock.monotonic();
    if (now - this.#toldAt < QUIET_MS) return;
    this.#toldAt = now;
    const next = 'check tracing.endpoint and the collector; nothing else depends on it';
    this.#options.logger.warn(`traces could not be sent: ${messageOf(error)}; ${next}`);
  }
}
