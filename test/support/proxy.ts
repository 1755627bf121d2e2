import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

interface ProxyOptions {
  /** Asked for as basic credentials; undefined: everybody may. */
  username?: string;
  password?: string;
  /** Status that every request gets instead of a way through. */
  answer?: number;
}

/** A forward proxy: tunnels for CONNECT, and plain requests with a whole URL. */
export class ForwardProxy implements AsyncDisposable {
  /** What went through, oldest first: `CONNECT host:port` or `GET http://host:port/path`. */
  readonly requests: string[] = [];
  readonly #options: ProxyOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();

  private constructor(options: ProxyOptions) {
    this.#options = options;
    this.#server = createServer((incoming, response) => this.#forward(incoming, response));
    this.#server.on('connection', (socket: Socket) => this.#keep(socket));
    this.#server.on('connect', (incoming: IncomingMessage, socket: Duplex) => this.#tunnel(incoming, socket));
  }

  /** Listens on a free port of 127.0.0.1. */
  static async start(options: ProxyOptions = {}): Promise<ForwardProxy> {
    const proxy = new ForwardProxy(options);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  /** `http://127.0.0.1:<port>`. */
  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    for (const socket of this.#sockets) socket.destroy();
    await promise;
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }

  /** The status with which a request is refused, if it is. */
  #refusal({ headers }: IncomingMessage): number | undefined {
    const { username, password, answer } = this.#options;
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    if (username !== undefined && headers['proxy-authorization'] !== `Basic ${basic}`) return 407;
    return answer;
  }

  #tunnel(incoming: IncomingMessage, socket: Duplex): void {
    const refusal = this.#refusal(incoming);
    if (refusal) {
      const ask = refusal === 407 ? 'Proxy-Authenticate: Basic realm="test"\r\n' : '';
      socket.end(`HTTP/1.1 ${refusal} Refused\r\n${ask}Content-Length: 0\r\nConnection: close\r\n\r\n`);
      return;
    }
    this.requests.push(`CONNECT ${incoming.url}`);
    const [host = '', port] = (incoming.url ?? '').split(':');
    const upstream = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(socket);
      socket.pipe(upstream);
    });
    this.#keep(upstream);
    upstream.on('error', () => socket.destroy());
    socket.on('close', () => upstream.destroy());
  }

  #forward(incoming: IncomingMessage, response: ServerResponse): void {
    const refusal = this.#refusal(incoming);
    if (refusal) {
      response.writeHead(refusal, refusal === 407 ? { 'proxy-authenticate': 'Basic realm="test"' } : {}).end();
      return;
    }
    this.requests.push(`${incoming.method} ${incoming.url}`);
    const { 'proxy-authorization': _own, 'proxy-connection': _hop, ...headers } = incoming.headers;
    const upstream = request(incoming.url ?? '', { method: incoming.method ?? 'GET', headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    incoming.pipe(upstream);
  }
}
