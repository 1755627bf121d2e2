import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { listen } from '../../support/listen.ts';

/** What the proxy does with requests instead of passing them on. */
export type StoreFault = 'none' | 'cut' | 'error' | 'no-bucket';

/** MinIO's answer; SeaweedFS makes the bucket instead. */
const NO_BUCKET =
  '<?xml version="1.0"?><Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>';

/** The store behind a proxy of its own, which counts and can fail. */
export interface StoreProxy extends AsyncDisposable {
  endpoint: string;
  /** Every request that came in: method, path of the bucket and key, monotonic milliseconds. */
  readonly requests: { method: string; path: string; at: number }[];
  fault: StoreFault;
  /** Number of requests with that method (all without), which came in since the index `since` of `requests`. */
  count(method?: string, since?: number): number;
}

/** Puts a proxy before the S3 server on a loopback port; the signatures stay valid, since the Host header stays. */
export async function startStoreProxy(endpoint: string): Promise<StoreProxy> {
  const target = new URL(endpoint);
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });

  function pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method, url: path, headers } = incoming;
    const out = request({ agent, host: target.hostname, port: target.port, method, path, headers }, (reply) => {
      outgoing.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(outgoing);
    });
    out.on('error', () => outgoing.destroy());
    incoming.pipe(out);
  }

  const { host, close } = await listen((incoming, outgoing) => {
    const path = incoming.url?.split('?', 1)[0] ?? '';
    proxy.requests.push({ method: incoming.method ?? '', path, at: performance.now() });
    if (proxy.fault === 'none') pass(incoming, outgoing);
    else if (proxy.fault === 'cut') incoming.socket.resetAndDestroy();
    else if (proxy.fault === 'error') outgoing.writeHead(503).end();
    else outgoing.writeHead(404, { 'content-type': 'application/xml' }).end(NO_BUCKET);
  });
  const proxy: StoreProxy = {
    endpoint: `http://${host}`,
    requests: [],
    fault: 'none',
    count: (method, since = 0) =>
      proxy.requests.slice(since).filter((one) => method === undefined || one.method === method).length,
    [Symbol.asyncDispose]: async () => {
      agent.destroy();
      await close();
    },
  };
  return proxy;
}
