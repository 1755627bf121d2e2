import { randomUUID } from 'node:crypto';
import * as http from 'node:http';
import * as https from 'node:https';
import type { Endpoint } from './s3.settings.ts';

/** Key of the probe; nothing else in the bucket begins so. */
const PROBE = 'anonymous-write-probe-';

/** The HTTP status of a PUT without any signature, and the key that it tried to write. */
export async function putUnsigned(
  endpoint: Endpoint,
  bucket: string,
  ca: string | undefined,
  signal: AbortSignal,
): Promise<{ status: number; key: string }> {
  const key = `${PROBE}${randomUUID()}`;
  const options: https.RequestOptions = {
    method: 'PUT',
    host: endpoint.host,
    port: endpoint.port,
    path: `/${bucket}/${key}`,
    headers: { 'content-length': 0 },
    signal,
    ...(endpoint.tls && ca ? { ca } : {}),
  };
  const status = await new Promise<number>((resolve, reject) => {
    const request = (endpoint.tls ? https : http).request(options, (response) => {
      // Nobody reads the answer: the status says it all.
      response.on('error', () => {});
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('error', reject);
    request.end();
  });
  return { status, key };
}
