import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { parse, stringify } from 'yaml';
import type { OperatorAccount } from '../../support/operator-account.ts';

/** The API server behind a wire that can be cut. */
export interface ApiProxy extends AsyncDisposable {
  /** The account with the address of the proxy. */
  account: OperatorAccount;
  /** True: every connection is reset, and so is each new one. */
  down: boolean;
  /** Resets what is open; new connections pass unless `down`. */
  cut(): void;
  /** Connections accepted so far. */
  readonly connections: number;
}

interface Kubeconfig {
  clusters: { cluster: { server: string } }[];
}

/** Puts a plain wire before the API server that an account uses; TLS goes through it untouched. */
export async function startApiProxy(account: OperatorAccount): Promise<ApiProxy> {
  const config = parse(readFileSync(account.kubeconfig, 'utf8')) as Kubeconfig;
  const [first] = config.clusters;
  if (!first) throw new Error('the kubeconfig names no cluster');
  const target = new URL(first.cluster.server);
  const sockets = new Set<Socket>();
  let connections = 0;
  let down = false;

  const server = createServer((socket) => {
    connections++;
    if (down) {
      socket.resetAndDestroy();
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  first.cluster.server = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfig = `${account.kubeconfig}-behind-proxy`;
  writeFileSync(kubeconfig, stringify(config), { mode: 0o600 });
  return {
    account: { ...account, kubeconfig },
    get down() {
      return down;
    },
    set down(value) {
      down = value;
      if (value) cut();
    },
    cut,
    get connections() {
      return connections;
    },
    [Symbol.asyncDispose]: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
