import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { addressOf } from '../base/address.ts';
import type { Clock } from '../base/clock.ts';
import { DeadlineExceeded, withDeadline } from '../base/deadline.ts';
import type { Key } from '../kube/types.ts';
import type { Check } from './check.ts';

/** What a sender gets. */
export interface Answer {
  code: number;
  text: string;
  headers?: Record<string, string>;
}

/** Bounds of the server; each has a reason in docs/adr (webhook receiver). */
export interface Limits {
  /** Largest body; only a running hash is kept of it. */
  bodyBytes: number;
  /** For the whole body, milliseconds. */
  readMs: number;
  /** Deliveries that are being read at once. */
  deliveries: number;
  connections: number;
  /** A refusal is not sent earlier than this after the request, milliseconds: its time tells nothing about why. */
  refusalMs: number;
}

/** How the reading of a body ended. */
export type Reading = 'whole' | 'tooLarge' | 'late' | 'gone';

/** What the server asks about a delivery. */
export interface Handler {
  /** Prepares the check; what it throws is answered with 503. */
  open(key: Key, request: IncomingMessage): Promise<Check>;
  /** The body is in. `holds` false: refused. */
  close(key: Key, request: IncomingMessage, holds: boolean): Promise<Answer>;
  /** It came to no verdict. */
  failed(key: Key, request: IncomingMessage, why: Exclude<Reading, 'whole'> | 'busy' | 'error', error?: unknown): void;
}

const LABEL = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?';
const PATH = new RegExp(`^/hooks/(${LABEL})/(${LABEL}(?:\\.${LABEL})*)$`);
const MAX_NAME = 253;
const MAX_HEADER_BYTES = 16 * 1024;
const HEADERS_MS = 5_000;
const LOOK_MS = 1_000;
const CLOSE_MS = 5_000;

const NOT_FOUND: Answer = { code: 404, text: 'deliveries go to /hooks/<namespace>/<name of the MarketplaceSource>' };
const NOT_POST: Answer = { code: 405, text: 'deliveries are sent by POST', headers: { allow: 'POST' } };
const LATE: Answer = { code: 408, text: 'the body did not arrive in time' };
const BUSY: Answer = { code: 503, text: 'busy; deliver again later', headers: { 'retry-after': '5' } };
/** One answer for everything that must not be told apart. */
export const REFUSED: Answer = {
  code: 401,
  text: 'refused: check the URL, the secret and the signature; docs/guides/webhooks.md has the steps for each Git host',
  headers: { 'www-authenticate': 'Signature realm="skill-operator webhooks"' },
};

/** Key of the MarketplaceSource that a path names; undefined for every other path. The query is not looked at. */
export function keyOfPath(url: string | undefined): Key | undefined {
  const [, namespace, name] = PATH.exec(url?.split('?', 1)[0] ?? '') ?? [];
  return namespace !== undefined && name !== undefined && name.length <= MAX_NAME ? `${namespace}/${name}` : undefined;
}

/** Feeds the body to `check` as it arrives and keeps nothing of it. */
async function read(request: IncomingMessage, check: Check, cap: number): Promise<Reading> {
  let bytes = 0;
  try {
    // Leaving the loop must not close the socket: the answer still has to go out.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      bytes += (chunk as Buffer).length;
      if (bytes > cap) return 'tooLarge';
      check.update(chunk as Buffer);
    }
    return request.complete ? 'whole' : 'gone';
  } catch {
    return 'gone';
  }
}

/** The HTTP side of the receiver: paths, bounds and deadlines; what a delivery means is the handler's. */
export class HookServer {
  readonly #handler: Handler;
  readonly #limits: Limits;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #server: Server;
  #reading = 0;

  constructor(handler: Handler, limits: Limits, clock: Clock, signal: AbortSignal) {
    this.#handler = handler;
    this.#limits = limits;
    this.#clock = clock;
    this.#signal = signal;
    this.#server = createServer(
      { maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: HEADERS_MS, connectionsCheckingInterval: LOOK_MS },
      (request, response) => void this.#serve(request, response),
    );
    // The body has a deadline of its own, which is answered; this one is for what slips through.
    this.#server.requestTimeout = HEADERS_MS + limits.readMs + LOOK_MS;
    this.#server.maxConnections = limits.connections;
  }

  /** Resolves with the port once it listens. */
  async listen(address: string): Promise<number> {
    const { host, port } = addressOf(address);
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  /** Takes no more deliveries, lets those under way end for at most five seconds. */
  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeIdleConnections();
    const cancel = this.#clock.after(CLOSE_MS, () => this.#server.closeAllConnections());
    await promise;
    cancel();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrived = this.#clock.monotonic();
    // A reset connection is the sender's matter; without a listener it would end the process.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    const answer = await this.#answer(request);
    if (!answer) return;
    if (answer === REFUSED) await this.#pause(arrived + this.#limits.refusalMs - this.#clock.monotonic());
    const headers = {
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...answer.headers,
      // What is left of a body is not read.
      ...(request.complete ? {} : { connection: 'close' }),
    };
    response.writeHead(answer.code, headers).end(`${answer.text}\n`);
  }

  async #pause(ms: number): Promise<void> {
    if (ms <= 0) return;
    try {
      await this.#clock.sleep(ms, this.#signal);
    } catch {
      // The process ends: the answer goes out now.
    }
  }

  async #answer(request: IncomingMessage): Promise<Answer | undefined> {
    const key = keyOfPath(request.url);
    if (key === undefined) return NOT_FOUND;
    if (request.method !== 'POST') return NOT_POST;
    if (Number(request.headers['content-length'] ?? 0) > this.#limits.bodyBytes) return this.#tooLarge(key, request);
    if (this.#reading >= this.#limits.deliveries) {
      this.#handler.failed(key, request, 'busy');
      return BUSY;
    }
    this.#reading++;
    try {
      return await this.#receive(key, request);
    } catch (error) {
      this.#handler.failed(key, request, 'error', error);
      return BUSY;
    } finally {
      this.#reading--;
    }
  }

  async #receive(key: Key, request: IncomingMessage): Promise<Answer | undefined> {
    const check = await this.#handler.open(key, request);
    const reading = await this.#read(request, check);
    if (reading === 'whole') return await this.#handler.close(key, request, check.holds());
    if (reading === 'tooLarge') return this.#tooLarge(key, request);
    this.#handler.failed(key, request, reading);
    return reading === 'late' ? LATE : undefined;
  }

  async #read(request: IncomingMessage, check: Check): Promise<Reading> {
    const { bodyBytes, readMs } = this.#limits;
    try {
      return await withDeadline(this.#signal, readMs, () => read(request, check, bodyBytes));
    } catch (error) {
      if (error instanceof DeadlineExceeded) return 'late';
      throw error;
    }
  }

  #tooLarge(key: Key, request: IncomingMessage): Answer {
    this.#handler.failed(key, request, 'tooLarge');
    return {
      code: 413,
      text: `a delivery may have ${this.#limits.bodyBytes} bytes; the next look at spec.interval finds the change`,
    };
  }
}
