import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { addressOf } from './base/address.ts';

/** What the probes ask. */
export interface Health {
  /** False: restart this process. */
  alive(): boolean;
  /** False: not ready to take over work yet. */
  ready(): boolean;
  metrics(): Promise<string>;
}

type Answer = { code: number; body: string };

async function answer(path: string | undefined, health: Health): Promise<Answer> {
  const verdict = (good: boolean, otherwise: string) => ({ code: good ? 200 : 503, body: good ? 'ok\n' : otherwise });
  switch (path) {
    case '/healthz':
      return verdict(health.alive(), 'the event loop or a watch is stuck\n');
    case '/readyz':
      return verdict(health.ready(), 'the Kubernetes API has not answered yet\n');
    case '/metrics':
      return { code: 200, body: await health.metrics() };
    default:
      return { code: 404, body: 'try /healthz, /readyz or /metrics\n' };
  }
}

/** Serves /healthz, /readyz and /metrics; resolves once it listens. `close` ends it. */
export async function serveProbes(address: string, health: Health): Promise<{ port: number; close(): Promise<void> }> {
  const server: Server = createServer((request, response) => {
    const send = ({ code, body }: Answer) => response.writeHead(code, { 'content-type': 'text/plain' }).end(body);
    answer(request.url?.split('?', 1)[0], health).then(send, () => send({ code: 500, body: 'cannot be rendered\n' }));
  });
  server.requestTimeout = 5_000;
  server.maxConnections = 64;
  const { host, port } = addressOf(address);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
