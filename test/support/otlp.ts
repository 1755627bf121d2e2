import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span as it came over the wire. */
export interface WireSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: { stringValue?: string; intValue?: string } }[];
  status: { code: number; message?: string };
}

/** A collector that keeps what it gets. */
export interface OtlpReceiver extends AsyncDisposable {
  readonly endpoint: string;
  readonly spans: WireSpan[];
  readonly bodies: string[];
  readonly headers: Record<string, unknown>[];
  /** Status of the next answers. */
  status: number;
}

/** Listens on a free port of the loopback address. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: WireSpan[] = [];
  const bodies: string[] = [];
  const headers: Record<string, unknown>[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    bodies.push(body);
    headers.push({ ...request.headers, url: request.url });
    const { resourceSpans } = JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: WireSpan[] }[] }[] };
    if (receiver.status < 300) {
      for (const { scopeSpans } of resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
    }
    response.writeHead(receiver.status, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const receiver: OtlpReceiver = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{ spans, bodies, headers, status: 200 },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return receiver;
}
