import { createReadStream, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { blobPath } from './image.ts';

/** A registry that speaks plain http, and the credential for it if it wants one. */
export interface PushTarget {
  address: string;
  username?: string;
  password?: string;
}

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

const PUSH_TIMEOUT_MS = 60_000;

function authorization({ username, password }: PushTarget): Record<string, string> {
  if (username === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
}

type Options = NonNullable<Parameters<typeof request>[1]>;

async function call(target: PushTarget, url: URL, options: Options, accept: readonly number[]) {
  const headers = { ...authorization(target), ...(options.headers as Record<string, string> | undefined) };
  const { statusCode, headers: answered, body } = await request(url, { ...options, headers });
  const text = await body.text();
  if (!accept.includes(statusCode)) {
    throw new Error(
      `${options.method} ${url.pathname} of ${target.address} answers ${statusCode}: ${text.slice(0, 300)}`,
    );
  }
  return { statusCode, location: String(answered.location ?? '') };
}

async function pushBlob(
  target: PushTarget,
  base: URL,
  layout: string,
  blob: Descriptor,
  signal: AbortSignal,
): Promise<void> {
  const head = await call(target, new URL(`blobs/${blob.digest}`, base), { method: 'HEAD', signal }, [200, 404]);
  if (head.statusCode === 200) return;
  const { location } = await call(target, new URL('blobs/uploads/', base), { method: 'POST', signal }, [202]);
  const upload = new URL(location, base);
  upload.searchParams.set('digest', blob.digest);
  const headers = { 'content-type': 'application/octet-stream', 'content-length': String(blob.size) };
  const body = createReadStream(blobPath(layout, blob.digest));
  await call(target, upload, { method: 'PUT', headers, body, signal }, [201]);
}

/** Pushes the one image of an OCI layout; returns it as `<host>:<port>/<repository>@sha256:<hex>`. */
export async function pushImage(
  layout: string,
  target: PushTarget,
  repository: string,
  signal: AbortSignal,
  tag = 'test',
): Promise<string> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(PUSH_TIMEOUT_MS)]);
  const base = new URL(`http://${target.address}/v2/${repository}/`);
  const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as { manifests: [Descriptor] };
  const [{ digest, mediaType }] = manifests;
  const bytes = readFileSync(blobPath(layout, digest));
  const { config, layers } = JSON.parse(bytes.toString('utf8')) as { config: Descriptor; layers: Descriptor[] };
  for (const blob of [config, ...layers]) await pushBlob(target, base, layout, blob, either);
  const headers = { 'content-type': mediaType };
  await call(target, new URL(`manifests/${tag}`, base), { method: 'PUT', headers, body: bytes, signal: either }, [201]);
  return `${target.address}/${repository}@${digest}`;
}
