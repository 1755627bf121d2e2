import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import * as tls from 'node:tls';

/** What the wire does with a connection. */
export type Fault =
  | { kind: 'pass' }
  /** Accepts, reads, never answers. */
  | { kind: 'silent' }
  /** Resets the connection after that many bytes of the answer. */
  | { kind: 'reset'; afterBytes: number };

/** A TCP wire to a real server, with faults on demand. */
export class Wire implements AsyncDisposable {
  /** `http://127.0.0.1:<port>`, or `https` with a certificate. */
  readonly url: string;
  /** Fault of the next connections: the first is used up by one connection, the last stays. */
  faults: Fault[] = [{ kind: 'pass' }];
  /** Connections so far. */
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, target: URL, secure: boolean) {
    this.#server = server;
    this.url = `${secure ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on(secure ? 'secureConnection' : 'connection', (socket: Socket) => this.#accept(socket, target));
  }

  /** A wire to that server; with PEM texts of a certificate it speaks TLS on this side. */
  static async to(target: string, certificate?: { key: string; cert: string }): Promise<Wire> {
    const server = certificate ? tls.createServer(certificate) : createServer();
    server.on('tlsClientError', () => {});
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Wire(server, new URL(target), certificate !== undefined);
  }

  /** Sockets open now on this side. */
  get open(): number {
    return this.#sockets.size;
  }

  /** Resets every connection that is open now. */
  drop(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  #accept(socket: Socket, target: URL): void {
    this.connections++;
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
    const fault = (this.faults.length > 1 ? this.faults.shift() : this.faults[0]) as Fault;
    if (fault.kind === 'silent') {
      socket.resume();
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    upstream.on('error', () => socket.destroy());
    upstream.on('close', () => socket.end());
    socket.on('close', () => upstream.destroy());
    socket.pipe(upstream);
    let left = fault.kind === 'reset' ? fault.afterBytes : Number.POSITIVE_INFINITY;
    upstream.on('data', (chunk) => {
      const part = chunk.subarray(0, Math.max(0, left));
      left -= chunk.length;
      if (left > 0) socket.write(chunk);
      else socket.write(part, () => socket.resetAndDestroy());
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** A port of this machine on which nothing listens. */
export async function deadPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
