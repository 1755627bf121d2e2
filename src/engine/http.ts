import { type Dispatcher, request } from 'undici';
import type { z } from 'zod';
import { DeadlineExceeded, withDeadline } from '../base/deadline.ts';
import { messageOf } from '../base/errors.ts';
import { innermostCode, isTlsFailure, readCapped } from '../base/http.ts';
import { holdSecret } from '../base/redact.ts';
import type { Engine } from '../protocol/types.ts';
import { bodyText, ENGINE_LABEL, EngineError, type Purpose, refusalError, retryAfterMs } from './errors.ts';

/** An engine's API key, with the hosts that its Secret is bound to (annotation skills.tfrobot.io/hosts). */
export interface EngineKey {
  value: string;
  hosts?: readonly string[] | undefined;
}

/** How to reach one engine's API. */
export interface EngineConnection {
  /** http(s) URL without credentials; a path in front of the API is kept. */
  url: string;
  /** Reads the key's Secret on use, so that a rotated key counts at once; undefined: an engine without authentication. */
  key?: ((signal: AbortSignal) => Promise<EngineKey | undefined>) | undefined;
  /** A pool with the CA bundle or the proxy of this engine; default: undici's global one. */
  dispatcher?: Dispatcher | undefined;
  /** Deadline of one ordinary call, in milliseconds; default 30 s. */
  timeoutMs?: number | undefined;
  /** Wall clock, for a Retry-After that is a date. */
  now?: (() => number) | undefined;
}

/** One call of an engine's API. */
export interface EngineCall {
  method: 'GET' | 'POST' | 'DELETE';
  /** Path and query below the base URL, already encoded. */
  path: string;
  purpose: Purpose;
  body?: unknown;
  timeoutMs?: number;
  /** Largest accepted answer in bytes; default 1 MiB. */
  maxBytes?: number;
  /** Statuses besides 2xx that come back as an answer instead of an error. */
  accept?: readonly number[];
}

/** An answer that was read whole. */
export interface EngineAnswer {
  status: number;
  /** The body; `message` of an error body for statuses outside 2xx. */
  text: string;
  header(name: string): string | undefined;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_MAX_BYTES = 1024 * 1024;
const USER_AGENT = 'skill-operator';

/** Calls one engine's API: one deadline, one size cap and one way of failing for every request; redirects are never followed. */
export class EngineHttp {
  readonly #engine: Engine;
  readonly #connection: EngineConnection;
  readonly #authorize: (key: string) => Record<string, string>;
  readonly #base: URL;

  /** Throws EngineError `Config` when the URL cannot be used. */
  constructor(engine: Engine, connection: EngineConnection, authorize: (key: string) => Record<string, string>) {
    this.#engine = engine;
    this.#connection = connection;
    this.#authorize = authorize;
    this.#base = parseBase(engine, connection.url);
  }

  /** Sends one call; resolves for 2xx and `accept`, rejects with an EngineError for everything else. */
  async send(call: EngineCall, signal: AbortSignal): Promise<EngineAnswer> {
    const headers = await this.#headers(call, signal);
    const answer = await this.#exchange(call, headers, signal);
    if ((answer.status >= 200 && answer.status < 300) || call.accept?.includes(answer.status)) return answer;
    throw refusalError({
      engine: this.#engine,
      purpose: call.purpose,
      call: describe(call),
      status: answer.status,
      text: answer.text,
      retryAfterMs: retryAfterMs(answer.header('retry-after'), (this.#connection.now ?? Date.now)()),
    });
  }

  /** The JSON of an answer in the shape that `schema` asks for; EngineError `Unknown` when it has another. */
  parse<S extends z.ZodType>(call: EngineCall, answer: EngineAnswer, schema: S): z.output<S> {
    let json: unknown;
    try {
      json = JSON.parse(answer.text);
    } catch {
      throw this.#unexpected(call, 'is not JSON');
    }
    const parsed = schema.safeParse(json);
    if (parsed.success) return parsed.data;
    const issue = parsed.error.issues[0];
    throw this.#unexpected(call, `lacks a usable ${issue?.path.join('.') || 'body'}`);
  }

  #unexpected(call: EngineCall, what: string): EngineError {
    return new EngineError(
      'Unknown',
      this.#engine,
      `The answer of ${ENGINE_LABEL[this.#engine]} to ${describe(call)} ${what}`,
    );
  }

  async #headers(call: EngineCall, signal: AbortSignal): Promise<Record<string, string>> {
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': USER_AGENT };
    if (call.body !== undefined) headers['content-type'] = 'application/json';
    const key = await this.#connection.key?.(signal);
    if (!key) return headers;
    const value = key.value.trim();
    holdSecret(value);
    if (key.hosts && !key.hosts.includes(this.#base.hostname) && !key.hosts.includes(this.#base.host)) {
      throw new EngineError(
        'Auth',
        this.#engine,
        `The key's Secret may not be sent to ${this.#base.host}: its annotation skills.tfrobot.io/hosts names other hosts`,
      );
    }
    if (!/^[\x21-\x7e]+$/.test(value)) {
      throw new EngineError('Auth', this.#engine, 'The key holds blanks or characters that no HTTP header can carry');
    }
    return { ...headers, ...this.#authorize(value) };
  }

  async #exchange(call: EngineCall, headers: Record<string, string>, signal: AbortSignal): Promise<EngineAnswer> {
    const timeoutMs = call.timeoutMs ?? this.#connection.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const url = new URL(this.#base.pathname.replace(/\/$/, '') + call.path, this.#base);
    try {
      return await withDeadline(signal, timeoutMs, async (bounded) => {
        const response = await request(url, {
          method: call.method,
          headers,
          body: call.body === undefined ? null : JSON.stringify(call.body),
          signal: bounded,
          // The deadline above is the one that counts; undici's own would cut a slow delete short.
          headersTimeout: 0,
          bodyTimeout: 0,
          ...(this.#connection.dispatcher ? { dispatcher: this.#connection.dispatcher } : {}),
        });
        const text = await this.#read(call, response.body);
        const status = response.statusCode;
        return {
          status,
          text: status >= 200 && status < 300 ? text : bodyText(text),
          header: (name) => [response.headers[name]].flat()[0],
        };
      });
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof EngineError ? error : this.#transportError(call, error);
    }
  }

  async #read(call: EngineCall, body: Dispatcher.ResponseData['body']): Promise<string> {
    const cap = call.maxBytes ?? DEFAULT_MAX_BYTES;
    const bytes = await readCapped(body, cap, () => this.#unexpected(call, `is larger than ${cap} bytes`));
    return bytes.toString('utf8');
  }

  #transportError(call: EngineCall, error: unknown): EngineError {
    const label = ENGINE_LABEL[this.#engine];
    const code = innermostCode(error);
    if (code !== undefined && isTlsFailure(code)) {
      return new EngineError(
        'Config',
        this.#engine,
        `The certificate of ${label} at ${this.#base.host} is not trusted (${code})`,
        {
          cause: error,
        },
      );
    }
    const why = error instanceof DeadlineExceeded ? error.message : (code ?? messageOf(error));
    const problem = `engine unavailable: ${label} at ${this.#base.host} did not answer ${describe(call)} (${why})`;
    return new EngineError('Unavailable', this.#engine, problem, { cause: error });
  }
}

/** Whether a call ended without an answer in time, so that its effect is open. */
export const timedOut = (error: unknown): boolean =>
  error instanceof EngineError &&
  (error.httpStatus === 408 || error.httpStatus === 504 || error.cause instanceof DeadlineExceeded);

const describe = (call: EngineCall) => `${call.method} ${call.path.replace(/\?.*$/, '')}`;

function parseBase(engine: Engine, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const usable = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
  if (!usable) {
    throw new EngineError(
      'Config',
      engine,
      `The URL of ${ENGINE_LABEL[engine]} is not a plain http or https URL without credentials and query`,
    );
  }
  return url;
}
