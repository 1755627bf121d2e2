import { type Clock, systemClock } from '../base/clock.ts';
import { withDeadline } from '../base/deadline.ts';
import { Connection, type ConnectionOptions, type Exchange } from './connection.ts';
import { fromStatus, fromTransport, KubeError, parseRetryAfter } from './errors.ts';
import { MAX_OBJECT_BYTES, parseJson, readText } from './frames.ts';
import { Semaphore } from './semaphore.ts';
import type { Resource } from './types.ts';

const MAX_TRIES = 5;
/** Longest Retry-After that a call sits out itself; above it the error carries the wait to the caller. */
const MAX_WAIT_MS = 15_000;
/** Deadline of the headers of a watch. */
const OPEN_MS = 10_000;

/** What the runtime counts requests by. */
export type Verb = 'get' | 'list' | 'watch' | 'create' | 'patch' | 'delete';

/** One finished request, for metrics. `code` is the HTTP status, 0 without an answer. */
export interface ObservedCall {
  verb: Verb;
  resource: string;
  code: number;
  seconds: number;
}

export interface KubeClientOptions extends Omit<ConnectionOptions, 'connections' | 'watches' | 'userAgent'> {
  /** Open connections for calls, 16 by default. */
  connections?: number;
  /** Streams that are open at once; 16 by default. */
  watches?: number;
  version: string;
  /** Names the part of the program in the user agent: `skill-operator/<version> (<component>)`. */
  component: string;
  observe?: (call: ObservedCall) => void;
  /** Asked directly before every write goes out; throws (LeaseLost) where nothing may be written any more. */
  fence?: () => void;
  /** Uniform in [0, 1); for the jitter between tries. */
  random?: () => number;
}

/** One call with its bounds; `subject` opens every message about it. */
export interface Call {
  verb: Verb;
  resource: Resource;
  subject: string;
  exchange: Exchange;
  deadlineMs: number;
  /** Bytes of the largest answer accepted. */
  cap: number;
  /** Tries on 429 and 503; 5 by default. */
  tries?: number;
}

type Headers = Record<string, string | string[] | undefined>;

/** Sends calls: slots, deadlines, credentials, retries, counting. KubeClient puts the verbs on top. */
export class Caller {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #slots: Semaphore;
  readonly #observe: ((call: ObservedCall) => void) | undefined;
  readonly #fence: (() => void) | undefined;
  readonly requests: Record<Verb, number> = { get: 0, list: 0, watch: 0, create: 0, patch: 0, delete: 0 };

  constructor(options: KubeClientOptions) {
    const connections = options.connections ?? 16;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    // Waiting happens here and not inside the pool: what has a slot goes out at once, or not at all after an abort.
    this.#slots = new Semaphore(connections);
    this.#observe = options.observe;
    this.#fence = options.fence;
    const userAgent = `skill-operator/${options.version} (${options.component})`;
    const watches = options.watches ?? connections;
    this.#connection = new Connection({ load: options.load, connections, watches, userAgent, clock: this.#clock });
  }

  /** Namespace of the current context; inside a pod the pod's own. */
  get namespace(): string | undefined {
    return this.#connection.namespace;
  }

  /** Ends all connections; calls in flight fail. */
  close(): Promise<void> {
    return this.#connection.close();
  }

  /** Sends a watch and resolves with its body once the server accepted it; no retries. The body lives under `signal`. */
  async open(call: Omit<Call, 'deadlineMs' | 'cap'>, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    const headers = new AbortController();
    const late = () => headers.abort(new KubeError(0, 'Timeout', `${call.subject}: no answer within ${OPEN_MS} ms`));
    const cancel = this.#clock.after(OPEN_MS, late);
    const either = AbortSignal.any([signal, headers.signal]);
    try {
      const send = () => this.#connection.send(call.exchange, 'watches', either);
      const answer = await this.#counted(call, send, (a) => a.statusCode);
      if (answer.statusCode === 200) return answer.body;
      const text = await readText(answer.body, MAX_OBJECT_BYTES, call.subject);
      if (answer.statusCode === 401) await this.#connection.reload(signal);
      throw this.#refusal(call, answer.statusCode, answer.headers, text);
    } finally {
      cancel();
    }
  }

  /** Sends a call until it is answered for good; rejects with KubeError or the signal's reason. */
  async run(call: Call, signal: AbortSignal): Promise<{ body: unknown; bytes: number }> {
    const text = await this.text(call, signal);
    return { body: parseJson(text, call.subject), bytes: text.length };
  }

  /** The same for an answer that is no JSON. */
  async text(call: Call, signal: AbortSignal): Promise<string> {
    let reloaded = false;
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#once(call, signal);
      if (answer.code < 300) return answer.text;
      const error = this.#refusal(call, answer.code, answer.headers, answer.text);
      if (answer.code === 401 && !reloaded) {
        reloaded = true;
        await this.#connection.reload(signal);
        continue;
      }
      const wait = this.#waitOf(error, attempt);
      if (attempt >= (call.tries ?? MAX_TRIES) || wait === undefined) throw error;
      await this.#clock.sleep(wait, signal);
    }
  }

  /** Milliseconds before the next try; undefined where trying again is the caller's decision. */
  #waitOf(error: KubeError, attempt: number): number | undefined {
    if (error.code !== 429 && error.code !== 503) return undefined;
    const asked = error.retryAfterMs ?? 0;
    if (asked > MAX_WAIT_MS) return undefined;
    return Math.min(MAX_WAIT_MS, Math.max(asked, 250 * 2 ** attempt) * (1 + 0.25 * this.#random()));
  }

  async #once(call: Call, signal: AbortSignal): Promise<{ code: number; headers: Headers; text: string }> {
    await this.#slots.acquire(signal);
    try {
      return await this.#counted(
        call,
        () =>
          withDeadline(signal, call.deadlineMs, async (inner) => {
            const fence = call.exchange.method === 'GET' ? undefined : this.#fence;
            const answer = await this.#connection.send(call.exchange, 'calls', inner, fence);
            const text = await readText(answer.body, call.cap, call.subject);
            return { code: answer.statusCode, headers: answer.headers, text };
          }),
        (answer) => answer.code,
      );
    } catch (error) {
      signal.throwIfAborted();
      throw fromTransport(call.subject, error);
    } finally {
      this.#slots.release();
    }
  }

  async #counted<A>(
    call: Pick<Call, 'verb' | 'resource'>,
    send: () => Promise<A>,
    codeOf: (answer: A) => number,
  ): Promise<A> {
    this.requests[call.verb]++;
    const start = this.#clock.monotonic();
    let code = 0;
    try {
      const answer = await send();
      code = codeOf(answer);
      return answer;
    } finally {
      const seconds = (this.#clock.monotonic() - start) / 1000;
      this.#observe?.({ verb: call.verb, resource: call.resource.plural, code, seconds });
    }
  }

  #refusal(call: Pick<Call, 'subject'>, code: number, headers: Headers, text: string): KubeError {
    const header = headers['retry-after'];
    const retryAfterMs = parseRetryAfter(typeof header === 'string' ? header : header?.[0], this.#clock.now());
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      // A proxy in between answers HTML; the code says enough.
    }
    return fromStatus(call.subject, code, body, retryAfterMs);
  }
}
