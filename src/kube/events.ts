import { createHash } from 'node:crypto';
import { type Clock, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { type Logger, silentLogger } from '../base/log.ts';
import { redact } from '../base/redact.ts';
import { microTime } from './microtime.ts';
import type { KubeApi, KubeObject, Resource } from './types.ts';

const EVENTS: Resource = {
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  namespaced: true,
};

/** The API server's limit on `note`, in bytes. */
const MAX_NOTE_BYTES = 1024;
/** The same event about the same object is said once in this time. */
const WINDOW_MS = 10 * 60_000;
/** Events that may wait to be sent; under a storm the oldest are dropped, since events are a courtesy. */
const MAX_WAITING = 500;
const MAX_REMEMBERED = 5_000;

/** What a controller says about an object. `reason` and `action` are CamelCase; no times and no ids in `note`. */
export interface EventInput {
  type: 'Normal' | 'Warning';
  reason: string;
  action: string;
  note: string;
}

export interface EventRecorderOptions {
  api: KubeApi;
  /** `skills.tfrobot.io/skill-controller`. */
  reportingController: string;
  /** The pod's name. */
  reportingInstance: string;
  clock?: Clock;
  logger?: Logger;
}

/**
 * Sends Kubernetes events, best effort: `record` never fails and never waits, one event is under way at a time,
 * repetitions within ten minutes are dropped. Callers record transitions only.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #said = new Map<string, number>();
  readonly #waiting: KubeObject[] = [];
  #wake: (() => void) | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#logger = options.logger ?? silentLogger;
  }

  /** Queues an event about `regarding`. */
  record(regarding: KubeObject, input: EventInput): void {
    const note = cutBytes(redact(input.note), MAX_NOTE_BYTES);
    const { uid = '', name } = regarding.metadata;
    const id = [uid, name, input.type, input.reason, note].join('\0');
    const now = this.#clock.monotonic();
    const before = this.#said.get(id);
    if (before !== undefined && now - before < WINDOW_MS) return;
    this.#remember(id, now);
    this.#waiting.push(this.#eventOf(regarding, { ...input, note }));
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift();
    this.#wake?.();
  }

  /** Sends what was recorded until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake?.(), { once: true });
    while (!signal.aborted) {
      const event = this.#waiting.shift();
      if (event) await this.#send(event, signal);
      else await this.#more();
    }
  }

  async #send(event: KubeObject, signal: AbortSignal): Promise<void> {
    try {
      await this.#options.api.create(EVENTS, event.metadata.namespace ?? 'default', event, signal);
    } catch (error) {
      if (!signal.aborted) this.#logger.debug(`event dropped: ${messageOf(error)}`);
    }
  }

  async #more(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await promise;
    this.#wake = undefined;
  }

  #remember(id: string, now: number): void {
    this.#said.delete(id);
    this.#said.set(id, now);
    if (this.#said.size > MAX_REMEMBERED) this.#said.delete(this.#said.keys().next().value as string);
  }

  #eventOf(regarding: KubeObject, input: EventInput): KubeObject {
    const { name, namespace, uid, resourceVersion } = regarding.metadata;
    const now = this.#clock.now();
    const id = createHash('sha256')
      .update([uid, input.reason, input.note, String(now)].join('\0'))
      .digest('hex');
    const event = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      // Events of cluster-scoped objects live in default.
      metadata: {
        name: `${name.slice(0, 200).replace(/[.-]+$/, '')}.${id.slice(0, 16)}`,
        namespace: namespace ?? 'default',
      },
      eventTime: microTime(now),
      type: input.type,
      reason: input.reason,
      action: input.action,
      note: input.note,
      reportingController: this.#options.reportingController,
      reportingInstance: this.#options.reportingInstance.slice(0, 128),
      regarding: { apiVersion: regarding.apiVersion, kind: regarding.kind, name, namespace, uid, resourceVersion },
    };
    return event;
  }
}

/** Cuts to at most `max` bytes of UTF-8, at a code point, with a mark that something is missing. */
function cutBytes(text: string, max: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return text;
  const mark = '…';
  let end = max - Buffer.byteLength(mark);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end).toString() + mark;
}
