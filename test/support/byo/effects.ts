import { type IncomingMessage, request as plain } from 'node:http';
import { request as secure } from 'node:https';
import { listen } from '../listen.ts';

/** A request that changed something, as `PATCH /path?query`. */
type Judge = (request: string) => boolean;

/** Counts what an operator does outside its process, and calls somebody at a chosen one. */
export class Effects {
  #seen = 0;
  /** Is waited for before a request goes on; a rejection cuts the connection. */
  before: (request: string) => Promise<unknown> = () => Promise.resolve();
  /** Which effects count. */
  only: (what: string) => boolean = () => true;
  /** What the chosen one was. */
  chosen = '';
  #at = Number.POSITIVE_INFINITY;
  #act: () => void = () => undefined;

  /** One more effect. True: it is the chosen one, and `act` was called. */
  add(what: string): boolean {
    if (!this.only(what)) return false;
    this.#seen++;
    if (this.#seen !== this.#at) return false;
    this.chosen = what;
    this.#act();
    return true;
  }

  /** Counts from now on, and calls `act` at the effect of that number, from 1. */
  after(number: number, act: () => void): void {
    this.#seen = 0;
    this.#at = number;
    this.#act = act;
  }

  /** Calls nobody any more. */
  rest(): void {
    this.#at = Number.POSITIVE_INFINITY;
  }
}

/**
 * Puts a plain HTTP proxy before a server, which counts the requests that `isEffect` names once the server has carried them out. The answer to
 * the chosen one never arrives: whoever asked is dead by then.
 */
export async function startEffectProxy(
  target: { url: string; ca?: string | undefined },
  effects: Effects,
  isEffect: Judge,
): Promise<AsyncDisposable & { url: string }> {
  const { protocol, hostname, port } = new URL(target.url);
  const request = protocol === 'https:' ? secure : plain;
  const describe = ({ method, url }: IncomingMessage) => `${method} ${url}`;
  const { host, close } = await listen((incoming, outgoing) => {
    const { method, url: path, headers } = incoming;
    const to = { hostname, port, method, path, headers, ...(target.ca ? { ca: target.ca } : {}) };
    const out = request(to, (reply) => {
      const counts = (reply.statusCode ?? 500) < 300 && isEffect(describe(incoming));
      if (counts && effects.add(describe(incoming))) {
        outgoing.destroy();
        return;
      }
      outgoing.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(outgoing);
    });
    out.on('error', () => outgoing.destroy());
    outgoing.on('close', () => out.destroy());
    effects.before(describe(incoming)).then(
      () => incoming.pipe(out),
      () => outgoing.destroy(),
    );
  });
  return { url: `http://${host}`, [Symbol.asyncDispose]: close };
}
