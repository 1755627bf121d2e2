/** What every client over HTTP here does alike: an answer is read up to a cap, and a failed connection has a code. */

const TLS_CODES = /^(?:CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(?:GET_ISSUER|VERIFY)|EPROTO)/;

/** True for the code of a connection that failed at its certificate, or where the other side speaks no TLS. */
export const isTlsFailure = (code: string): boolean => TLS_CODES.test(code);

/** The code of the innermost cause that has one, such as `ECONNREFUSED`: wrappers only say that a request failed. */
export function innermostCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  const inner = cause === undefined ? undefined : innermostCode(cause);
  return inner ?? (typeof code === 'string' ? code : undefined);
}

/** Reads a body of at most `cap` bytes; a longer one is destroyed with its connection, and `tooLarge` is thrown. */
export async function readCapped(body: AsyncIterable<Buffer>, cap: number, tooLarge: () => Error): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    // Leaving the loop destroys the stream and with it the connection.
    if (size > cap) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
