import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as the stub saw it. */
export interface SeenRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: Record<string, string | undefined>;
  body: string;
}

/** An answer: `json` or `text`, or nothing at all. */
export interface StubAnswer {
  status: number;
  json?: unknown;
  text?: string;
  headers?: Record<string, string>;
}

/** What happens to matching requests instead of the normal answer; `after` lets the normal handling take effect first. */
export interface Fault {
  method?: string;
  path: RegExp;
  /** Matching requests that pass before; default 0. */
  skip?: number;
  /** Default 1. */
  times?: number;
  answer: StubAnswer | 'hang' | 'reset';
  after?: boolean;
}

const MAX_BODY = 1024 * 1024;

/** An HTTP server on loopback with a request log and a queue of faults; the engine stubs answer behind it. */
export abstract class StubServer implements AsyncDisposable {
  readonly seen: SeenRequest[] = [];
  readonly #faults: Fault[] = [];
  readonly #server: Server;
  /** Is called when a request has taken effect, before its answer leaves. */
  after: (request: SeenRequest) => void = () => undefined;
  /** Milliseconds that the stub's clock is ahead of the machine's. */
  protected skew = 0;

  constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        write(response, { status: 500, json: { code: 500, message: String(error) } });
      });
    });
  }

  /** The engine's normal answer. */
  protected abstract answer(request: SeenRequest): StubAnswer | Promise<StubAnswer>;

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Queues a fault. */
  fail(fault: Fault): void {
    this.#faults.push({ ...fault });
  }

  /** Moves the stub's clock. */
  elapse(ms: number): void {
    this.skew += ms;
  }

  /** `METHOD /path` of every request since the last call. */
  takeCalls(): string[] {
    return this.seen.splice(0).map((request) => `${request.method} ${request.path}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await read(incoming);
    this.seen.push(request);
    const fault = this.#take(request);
    if (!fault) return write(response, await this.#handle(request));
    if (fault.after) await this.#handle(request);
    if (fault.answer === 'reset') {
      response.destroy();
    } else if (fault.answer !== 'hang') {
      write(response, fault.answer);
    }
  }

  async #handle(request: SeenRequest): Promise<StubAnswer> {
    const answer = await this.answer(request);
    this.after(request);
    return answer;
  }

  #take(request: SeenRequest): Fault | undefined {
    const index = this.#faults.findIndex(
      (fault) => (fault.method ?? request.method) === request.method && fault.path.test(request.path),
    );
    const fault = this.#faults[index];
    if (!fault) return undefined;
    fault.skip = (fault.skip ?? 0) - 1;
    if (fault.skip >= 0) return undefined;
    fault.times = (fault.times ?? 1) - 1;
    if (fault.times <= 0) this.#faults.splice(index, 1);
    return fault;
  }
}

/** A route: a pattern over `METHOD /path` and its handler, which gets the captured groups. */
export type Route = readonly [pattern: RegExp, handle: (...groups: string[]) => StubAnswer];

/** The answer of the first route that matches. */
export function dispatch(routes: readonly Route[], { method, path }: SeenRequest): StubAnswer | undefined {
  for (const [pattern, handle] of routes) {
    const match = pattern.exec(`${method} ${path}`);
    if (match) return handle(...match.slice(1).map((group) => decodeURIComponent(group ?? '')));
  }
  return undefined;
}

async function read(incoming: IncomingMessage): Promise<SeenRequest> {
  let body = '';
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    body += chunk.toString();
    if (body.length > MAX_BODY) throw new Error('body too large');
  }
  const url = new URL(incoming.url ?? '/', 'http://stub');
  const headers = Object.fromEntries(
    Object.entries(incoming.headers).map(([name, value]) => [name, [value].flat()[0]]),
  );
  return { method: incoming.method ?? 'GET', path: url.pathname, query: url.searchParams, headers, body };
}

function write(response: ServerResponse, answer: StubAnswer): void {
  const json = answer.json !== undefined;
  response.writeHead(answer.status, { ...(json && { 'content-type': 'application/json' }), ...answer.headers });
  response.end(json ? JSON.stringify(answer.json) : answer.text);
}
