/**
 * The HTTP transport below the S3 client, which has no deadline, no abort and no size cap of its own.
 * What belongs to one call travels beside the client's code in an AsyncLocalStorage.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import * as http from 'node:http';
import * as https from 'node:https';

/** What one call allows, and what its last request met. */
export interface CallContext {
  signal: AbortSignal;
  /** Largest body of a successful answer that is read, in bytes. */
  maxBody: number;
  /** Called for every request that goes on the wire. */
  onRequest: () => void;
  /** HTTP status of the last answer. */
  status?: number;
  /** Set when a successful answer was cut off at `maxBody`. */
  overflow?: boolean;
}

/** The error of an answer that is longer than its call allows. */
class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge';
}

/** An error document of a real S3 server has a few hundred bytes. */
const MAX_ERROR_BODY = 64 * 1024;
/** Sockets to the store, kept alive between calls. */
export const MAX_SOCKETS = 16;
/** Idle sockets are closed before the usual servers close them, so a request seldom meets a dying one. */
const IDLE_MS = 20_000;

/** Gives every request of a client the signal and the caps of the call that runs it. */
export class CallTransport {
  readonly #calls = new AsyncLocalStorage<CallContext>();
  readonly #agent: http.Agent;
  readonly #module: typeof http | typeof https;

  constructor(options: { tls: boolean; ca?: string | undefined }) {
    const settings = { keepAlive: true, maxSockets: MAX_SOCKETS, maxFreeSockets: MAX_SOCKETS, timeout: IDLE_MS };
    this.#module = options.tls ? https : http;
    this.#agent = options.tls ? new https.Agent({ ...settings, ca: options.ca }) : new http.Agent(settings);
  }

  /** Runs `fn`; requests made within belong to `context`. */
  run<T>(context: CallContext, fn: () => Promise<T>): Promise<T> {
    return this.#calls.run(context, fn);
  }

  /** The `request` function of node:http, as the client calls it. */
  readonly request = (options: https.RequestOptions, onResponse: (res: http.IncomingMessage) => void) => {
    const call = this.#calls.getStore();
    if (!call) throw new Error('a request to the store outside of a call');
    call.onRequest();
    const request = this.#module.request({ ...options, agent: this.#agent, signal: call.signal });
    request.once('response', (response) => {
      call.status = response.statusCode ?? 0;
      // Whoever reads the body sees the error; this one keeps a late reset from ending the process.
      response.on('error', () => {});
      capBody(response, call);
      onResponse(response);
      // The client throws these away unread; reading them on keeps the socket for the next call.
      if (call.status >= 500 || call.status === 429 || call.status === 408) response.resume();
    });
    request.on('error', () => {});
    return request;
  };

  /** Closes all sockets. */
  close(): void {
    this.#agent.destroy();
  }
}

/** Destroys the answer as soon as it holds more than the call allows. */
function capBody(response: http.IncomingMessage, call: CallContext): void {
  const succeeded = (response.statusCode ?? 0) < 300;
  const limit = succeeded ? call.maxBody : MAX_ERROR_BODY;
  const push = response.push.bind(response);
  let bytes = 0;
  response.push = (chunk: unknown, encoding?: BufferEncoding) => {
    bytes += chunk instanceof Uint8Array ? chunk.length : 0;
    if (bytes <= limit || chunk === null) return push(chunk, encoding);
    call.overflow = succeeded;
    response.destroy(new BodyTooLarge(`the answer is longer than ${limit} bytes`));
    return false;
  };
}
