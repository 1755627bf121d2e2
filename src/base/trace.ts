import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type { Clock } from './clock.ts';
import { withLogFields } from './context.ts';

/** Names, ids, verbs and counts; never a message, an address or content of an object. */
export type SpanAttributes = Readonly<Record<string, string | number>>;

/** One finished piece of work of a trace. */
export interface Span {
  /** 32 hex digits, of the whole pass. */
  traceId: string;
  /** 16 hex digits. */
  spanId: string;
  parentId: string | undefined;
  name: string;
  /** Wall clock, milliseconds since the epoch. */
  start: number;
  end: number;
  attributes: SpanAttributes;
  /** Why it failed: a reason or a status code. */
  error: string | undefined;
}

/** Takes note of where the time of a pass goes. */
export interface Tracer {
  /** Runs `fn` as a trace of its own; what is recorded meanwhile belongs to it, and its log lines carry the id. Settles as `fn` does. */
  root<T>(name: string, attributes: SpanAttributes, fn: () => Promise<T>): Promise<T>;
  /** Something that just ended after `seconds`, as a part of the trace under way; outside of one nothing happens. */
  record(name: string, attributes: SpanAttributes, seconds: number, error?: string): void;
}

/** Traces nothing and costs nothing. */
export const noTracing: Tracer = {
  root: (_name, _attributes, fn) => fn(),
  record: () => undefined,
};

interface TracerOptions {
  clock: Clock;
  /** Gets each span when it ended; must not throw. */
  take: (span: Span) => void;
  /** Why something thrown failed, in one word. */
  reasonOf: (error: unknown) => string;
  /** Share of the traces that are kept, 0 to 1. */
  ratio: number;
  /** Uniform in [0, 1). */
  random?: () => number;
}

const id = (bytes: number): string => randomBytes(bytes).toString('hex');

/** A tracer that hands finished spans to `take`. */
export function createTracer(options: TracerOptions): Tracer {
  const { clock, take, reasonOf, ratio, random = Math.random } = options;
  const current = new AsyncLocalStorage<{ traceId: string; spanId: string }>();
  return {
    root: async (name, attributes, fn) => {
      if (random() >= ratio) return fn();
      const own = { traceId: id(16), spanId: id(8) };
      const start = clock.now();
      let error: string | undefined;
      try {
        return await current.run(own, () => withLogFields({ traceID: own.traceId }, fn));
      } catch (thrown) {
        error = reasonOf(thrown);
        throw thrown;
      } finally {
        take({ ...own, parentId: undefined, name, start, end: clock.now(), attributes, error });
      }
    },
    record: (name, attributes, seconds, error) => {
      const parent = current.getStore();
      if (!parent) return;
      const end = clock.now();
      const { traceId, spanId: parentId } = parent;
      take({ traceId, spanId: id(8), parentId, name, start: end - seconds * 1000, end, attributes, error });
    },
  };
}
