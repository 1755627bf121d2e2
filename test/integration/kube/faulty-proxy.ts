import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type RequestOptions, request } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { loadKubeConfig } from '../../../src/kube/connection.ts';

/** What the proxy does with a request instead of passing it on. */
export type Fault =
  | { kind: 'pass' }
  | { kind: 'status'; code: number; reason: string; headers?: Record<string, string> }
  /** Never answers, and nothing more comes over streams that are open. */
  | { kind: 'blackhole' }
  /** Cuts the connection with a RST. */
  | { kind: 'reset' }
  /** Passes on, but of the first watch frame only the first half, then ends the stream properly. */
  | { kind: 'half' }
  /** Asks the real server for a version long gone. */
  | { kind: 'ancient' };

export interface FaultyProxy {
  url: string;
  /** Requests that came in: `at` is monotonic milliseconds. */
  readonly log: {
    method: string;
    url: string;
    at: number;
    authorization: string | undefined;
    agent: string | undefined;
  }[];
  /** Connections accepted so far. */
  readonly connections: number;
  /** Decides per request; the default passes everything. */
  fault: (request: { method: string; url: string; authorization: string | undefined }) => Fault;
  /** Cuts every open connection. */
  cut(): void;
  /** While true, bytes of open watches are swallowed. */
  frozen: boolean;
  close(): Promise<void>;
}

/** A plain HTTP proxy on loopback before the real API server, which fails on command. It brings its own credentials. */
export async function startFaultyProxy(kubeconfig: string): Promise<FaultyProxy> {
  const config = loadKubeConfig(kubeconfig);
  const upstream: RequestOptions = { headers: {} };
  await config.applyToHTTPSOptions(upstream);
  const target = new URL(config.getCurrentCluster()?.server ?? '');
  const sockets = new Set<Socket>();
  let connections = 0;

  const server = createServer((incoming, outgoing) => {
    const method = incoming.method ?? '';
    const url = incoming.url ?? '';
    const { authorization } = incoming.headers;
    proxy.log.push({ method, url, at: performance.now(), authorization, agent: incoming.headers['user-agent'] });
    answer(incoming, outgoing, proxy.fault({ method, url, authorization }));
  });
  server.on('connection', (socket) => {
    connections++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });

  function answer(incoming: IncomingMessage, outgoing: ServerResponse, fault: Fault): void {
    if (fault.kind === 'blackhole') return;
    if (fault.kind === 'reset') {
      incoming.socket.resetAndDestroy();
      return;
    }
    if (fault.kind === 'status') {
      const { code, reason } = fault;
      incoming.resume();
      outgoing.writeHead(code, { 'content-type': 'application/json', ...fault.headers });
      outgoing.end(JSON.stringify({ kind: 'Status', status: 'Failure', code, reason, message: `test says ${code}` }));
      return;
    }
    forward(incoming, outgoing, fault);
  }

  function forward(incoming: IncomingMessage, outgoing: ServerResponse, fault: Fault): void {
    const { authorization: _, host: __, ...headers } = incoming.headers;
    const path = incoming.url ?? '';
    const streams = path.includes('watch=true');
    const out = request(
      {
        ...upstream,
        host: target.hostname,
        port: target.port,
        method: incoming.method,
        path: fault.kind === 'ancient' ? path.replace(/resourceVersion=\d+/, 'resourceVersion=1') : path,
        headers: { ...headers, ...(upstream.headers as Record<string, string>) },
      },
      (reply) => {
        outgoing.writeHead(reply.statusCode ?? 502, reply.headers);
        outgoing.flushHeaders();
        reply.on('data', (chunk: Buffer) => {
          if (proxy.frozen && streams) return;
          if (fault.kind === 'half' && streams) {
            outgoing.end(chunk.subarray(0, chunk.length >> 1));
            reply.destroy();
          } else outgoing.write(chunk);
        });
        reply.on('end', () => (proxy.frozen && streams) || outgoing.end());
        reply.on('error', () => outgoing.destroy());
      },
    );
    out.on('error', () => outgoing.destroy());
    outgoing.on('close', () => out.destroy());
    incoming.pipe(out);
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: FaultyProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    log: [],
    get connections() {
      return connections;
    },
    fault: () => ({ kind: 'pass' }),
    frozen: false,
    cut: () => {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
