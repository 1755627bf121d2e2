import { isUtf8 } from 'node:buffer';
import { retry } from '../base/errors.ts';
import type { TreeEntry } from './port.ts';

const SPACE = 0x20;
const NUL = 0x00;
const OID_BYTES = 20;

const corrupt = (why: string) =>
  retry(
    'MirrorCorrupt',
    `a tree object of the repository cannot be read (${why}): it is fetched anew; if this stays, run "git fsck" on the repository`,
  );

/** Old writers left odd permission bits in trees; Git itself reads only the kind and the owner's execute bit. */
function modeOf(mode: number): TreeEntry['mode'] {
  const kind = mode & 0o170000;
  if (kind === 0o040000) return '040000';
  if (kind === 0o100000) return mode & 0o100 ? '100755' : '100644';
  if (kind === 0o120000) return '120000';
  if (kind === 0o160000) return '160000';
  throw corrupt(`mode ${mode.toString(8)}`);
}

function octal(bytes: Buffer, from: number, to: number): number {
  let value = 0;
  if (to <= from || to - from > 7) throw corrupt('a mode of wrong length');
  for (let at = from; at < to; at++) {
    const digit = (bytes[at] as number) - 0x30;
    if (digit < 0 || digit > 7) throw corrupt('a mode that is not octal');
    value = value * 8 + digit;
  }
  return value;
}

/**
 * Entries of a raw tree object (`<octal mode> <name>NUL<20 bytes>` repeated), in stored order.
 * Names that are not UTF-8 come as latin1 with their bytes in `rawName`. Names are not judged here: `..` or `a/b` pass.
 * @throws PolicyError `MirrorCorrupt` when the bytes are no tree.
 */
export function parseTree(bytes: Buffer): TreeEntry[] {
  const entries: TreeEntry[] = [];
  let at = 0;
  while (at < bytes.length) {
    const space = bytes.indexOf(SPACE, at);
    const nul = space < 0 ? -1 : bytes.indexOf(NUL, space + 1);
    if (nul < 0 || nul + 1 + OID_BYTES > bytes.length) throw corrupt('it ends early');
    const mode = modeOf(octal(bytes, at, space));
    const raw = bytes.subarray(space + 1, nul);
    const oid = bytes.toString('hex', nul + 1, nul + 1 + OID_BYTES);
    if (isUtf8(raw)) entries.push({ name: raw.toString('utf8'), mode, oid });
    else entries.push({ name: raw.toString('latin1'), rawName: new Uint8Array(raw), mode, oid });
    at = nul + 1 + OID_BYTES;
  }
  return entries;
}
