import { KubeError } from './errors.ts';

/** Largest body of one object or one watch frame; etcd refuses objects above 1.5 MiB. */
export const MAX_OBJECT_BYTES = 8 * 1024 * 1024;

/** Reads a whole body as text; rejects with `BodyTooLarge` above `cap` bytes and destroys the stream. */
export async function readText(
  body: AsyncIterable<Buffer> & { destroy(): unknown },
  cap: number,
  subject: string,
): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > cap) {
      body.destroy();
      throw new KubeError(0, 'BodyTooLarge', `${subject}: the answer is larger than ${cap} bytes`);
    }
    chunks.push(chunk);
  }
  return chunks.length === 1 ? (chunks[0] as Buffer).toString() : Buffer.concat(chunks, size).toString();
}

/**
 * Splits a stream of newline-terminated JSON values.
 * Rejects with `BadBody` on a line that is no JSON and on a stream that ends inside a line, with `BodyTooLarge` above the cap.
 */
export async function* jsonLines(
  body: AsyncIterable<Buffer>,
  subject: string,
  cap = MAX_OBJECT_BYTES,
): AsyncGenerator<unknown> {
  let parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, end));
      const line = Buffer.concat(parts).toString();
      parts = [];
      size = 0;
      from = end + 1;
      if (line.trim() !== '') yield parseJson(line, subject);
    }
    if (from < chunk.length) {
      parts.push(chunk.subarray(from));
      size += chunk.length - from;
    }
    if (size > cap) throw new KubeError(0, 'BodyTooLarge', `${subject}: a watch frame is larger than ${cap} bytes`);
  }
  if (size > 0) throw new KubeError(0, 'BadBody', `${subject}: the stream ended inside a frame`);
}

/** JSON.parse whose failure is a `BadBody` without the text itself. */
export function parseJson(text: string, subject: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new KubeError(0, 'BadBody', `${subject}: the answer is not JSON`, { cause: error });
  }
}
