import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A plain wire to a service, which a test can cut; TLS goes through it untouched. */
export interface Gate extends AsyncDisposable {
  /** `<host>:<port>` in front of the service. */
  address: string;
  /** True: every connection is reset, and so is each new one. */
  down: boolean;
  /** True: every connection is ended, and each request on a new one is told to come later (HTTP 429). */
  busy: boolean;
  /** Resets what is open; new connections pass unless `down` or `busy`. */
  cut(): void;
  /** Connections accepted so far. */
  readonly connections: number;
  /** Requests that were told to come later. */
  readonly refused: number;
}

const TOO_MANY = 'HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/** Listens on `host` and passes everything on to `target`, both ways. */
export async function startGate(host: string, target: { hostname: string; port: string }): Promise<Gate> {
  const sockets = new Set<Socket>();
  let down = false;
  let busy = false;
  let connections = 0;
  let refused = 0;
  /** Without an `other` end an error is nobody's matter. */
  const keep = (socket: Socket, other?: Socket) => {
    sockets.add(socket);
    socket.on('error', () => other?.destroy());
    socket.on('close', () => {
      sockets.delete(socket);
      other?.destroy();
    });
  };
  const server = createServer((socket) => {
    connections++;
    if (down) {
      socket.resetAndDestroy();
      return;
    }
    if (busy) {
      keep(socket);
      socket.once('data', () => {
        refused++;
        socket.end(TOO_MANY);
      });
      return;
    }
    const out = connect(Number(target.port), target.hostname);
    keep(socket, out);
    keep(out, socket);
    socket.pipe(out);
    out.pipe(socket);
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
    get busy() {
      return busy;
    },
    set busy(value) {
      busy = value;
      cut();
    },
    cut,
    get connections() {
      return connections;
    },
    get refused() {
      return refused;
    },
    [Symbol.asyncDispose]: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
