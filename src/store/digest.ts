import { createHash, hash } from 'node:crypto';
import type { PackageFile } from '../protocol/types.ts';

/** Format of package, manifest and digest together: whatever changes one of them must change this tag. */
export const PACKAGE_FORMAT = 'skill-package/v1';

/** The sha256 of bytes or of UTF-8 text, 64 hex digits. */
export const sha256 = (bytes: Uint8Array | string): string => hash('sha256', bytes);

/** From here on hashing leaves the thread: a synchronous slice stays far below 20 ms. */
const HASH_ELSEWHERE = 256 * 1024;

/** The same, without blocking this thread for large input. */
export async function sha256OfLarge(bytes: Uint8Array): Promise<string> {
  if (bytes.length < HASH_ELSEWHERE) return sha256(bytes);
  return Buffer.from(await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>)).toString('hex');
}

/** Order of UTF-8 bytes, which no locale changes; JavaScript's own order of strings differs above U+FFFF. */
export function comparePaths(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/**
 * The identity of a package: sha256 over a listing of mode, path and content hash of every file, private ones included.
 * `files` must be in `comparePaths` order. The byte length in front of each path makes the listing unambiguous for any path.
 */
export function canonicalDigest(files: readonly (Pick<PackageFile, 'path' | 'mode'> & { sha256: string })[]): string {
  const listing = createHash('sha256').update(`${PACKAGE_FORMAT}\n`);
  for (const file of files) {
    listing.update(`${file.mode} ${Buffer.byteLength(file.path)}:${file.path} ${file.sha256}\n`);
  }
  return listing.digest('hex');
}
