import { text } from 'node:stream/consumers';
import { listen } from './listen.ts';

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
  const { host, close } = await listen(async (request, response) => {
    const body = await text(request);
    bodies.push(body);
    headers.push({ ...request.headers, url: request.url });
    const { resourceSpans } = JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: WireSpan[] }[] }[] };
    if (receiver.status < 300) {
      for (const { scopeSpans } of resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
    }
    response.writeHead(receiver.status, { 'content-type': 'application/json' }).end('{}');
  });
  const receiver: OtlpReceiver = {
    endpoint: `http://${host}`,
    ...{ spans, bodies, headers, status: 200 },
    [Symbol.asyncDispose]: close,
  };
  return receiver;
}
