import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A plain wire to a service, which a test can cut. */
export interface Gate extends AsyncDisposable {
  /** `<host>:<port>` in front of the service. */
  address: string;
  /** True: every connection is reset, and so is each new one. */
  down: boolean;
  /** True: every connection is ended, and each request on a new one is told to come later (HTTP 429). */
  busy: boolean;
  /** Requests that were told to come later. */
  readonly refused: number;
}

const TOO_MANY = 'HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/** Listens on `host` and passes everything on to `target`, both ways. */
export async function startGate(host: string, target: { hostname: string; port: string }): Promise<Gate> {
  const sockets = new Set<Socket>();
  let down = false;
  let busy = false;
  let refused = 0;
  const server = createServer((socket) => {
    if (down) {
      socket.resetAndDestroy();
      return;
    }
    if (busy) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      socket.on('error', () => undefined);
      socket.once('data', () => {
        refused++;
        socket.end(TOO_MANY);
      });
      return;
    }
    const out = connect(Number(target.port), target.hostname);
    for (const [one, other] of [
      [socket, out],
      [out, socket],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return {
    address: `${host}:${(server.address() as AddressInfo).port}`,
    get down() {
      return down;
    },
    set down(value) {
      down = value;
      if (value) cut();
    },
    get refused() {
      return refused;
    },
    get busy() {
      return busy;
    },
    set busy(value) {
      busy = value;
      cut();
    },
    [Symbol.asyncDispose]: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
