/**
 * A tar writer for packages: ustar with a pax record where a path needs one (POSIX.1-2017 pax, "ustar Interchange Format").
 * Pure and synchronous: the same entries give the same bytes on every machine, time zone, umask and locale.
 */
import { createHash } from 'node:crypto';
import { stalled } from '../base/errors.ts';

/** One regular file of an archive. */
export interface TarEntry {
  path: string;
  mode: '0644' | '0755';
  content: Uint8Array;
}

const BLOCK = 512;
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;
/** Largest size that the 11 octal digits of a ustar header hold. */
const MAX_SIZE = 8 ** 11 - 1;
/** Two zero blocks end an archive. */
const END = 2 * BLOCK;

const PAX_NAME = '././@PaxHeader';

interface Placed {
  entry: TarEntry;
  name: string;
  prefix: string;
  /** Content of the pax header in front of the entry; empty: none. */
  pax: Uint8Array;
  /** Offset of the entry's first byte, pax header included. */
  start: number;
  /** Offset of the content. */
  offset: number;
}

const padded = (size: number): number => Math.ceil(size / BLOCK) * BLOCK;

/** True for printable ASCII, the only text that every reader of ustar fields takes alike. */
const isPlain = (text: string): boolean => /^[\x20-\x7e]*$/.test(text);

/** Splits a path at a slash into ustar's prefix and name; undefined when neither field can hold it. */
function ustarName(path: string): { name: string; prefix: string } | undefined {
  if (!isPlain(path)) return undefined;
  if (path.length <= NAME_BYTES) return { name: path, prefix: '' };
  // The last slash that leaves a prefix that fits gives the shortest name.
  const slash = path.lastIndexOf('/', PREFIX_BYTES);
  const name = path.slice(slash + 1);
  return slash > 0 && name.length > 0 && name.length <= NAME_BYTES ? { name, prefix: path.slice(0, slash) } : undefined;
}

/** The pax record `<length> path=<path>\n`, whose decimal length counts itself. */
function paxPath(path: string): Uint8Array {
  const rest = Buffer.byteLength(path) + ' path=\n'.length;
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length = rest + String(length).length;
  return Buffer.from(`${length} path=${path}\n`);
}

/** Name for readers that know no pax: unique, plain and never a traversal. */
const fallbackName = (path: string): string => `@path/${createHash('sha256').update(path).digest('hex').slice(0, 32)}`;

function place(entry: TarEntry, start: number): Placed {
  if (entry.content.length > MAX_SIZE) {
    throw stalled('InternalError', `${entry.path} has ${entry.content.length} bytes, more than a tar header can say`);
  }
  const plain = ustarName(entry.path);
  if (plain) return { entry, ...plain, pax: new Uint8Array(0), start, offset: start + BLOCK };
  const pax = paxPath(entry.path);
  const offset = start + BLOCK + padded(pax.length) + BLOCK;
  return { entry, name: fallbackName(entry.path), prefix: '', pax, start, offset };
}

interface HeaderFields {
  name: string;
  prefix: string;
  mode: string;
  size: number;
  type: '0' | 'x';
}

/** Writes one ustar header; every field that could differ between machines is zero. */
function writeHeader(out: Buffer, at: number, { name, prefix, mode, size, type }: HeaderFields): void {
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  out.write(name, at, 'latin1');
  out.write(octal(Number.parseInt(mode, 8), 7), at + 100, 'latin1');
  out.write(octal(0, 7), at + 108, 'latin1'); // uid
  out.write(octal(0, 7), at + 116, 'latin1'); // gid
  out.write(octal(size, 11), at + 124, 'latin1');
  out.write(octal(0, 11), at + 136, 'latin1'); // mtime
  out.write('        ', at + 148, 'latin1'); // the checksum counts its own field as blanks
  out.write(type, at + 156, 'latin1');
  out.write('ustar\u000000', at + 257, 'latin1');
  out.write(octal(0, 7), at + 329, 'latin1'); // device numbers
  out.write(octal(0, 7), at + 337, 'latin1');
  out.write(prefix, at + 345, 'latin1');
  let sum = 0;
  for (let i = at; i < at + BLOCK; i++) sum += out[i] as number;
  out.write(`${sum.toString(8).padStart(6, '0')}\0 `, at + 148, 'latin1');
}

/**
 * Packs the entries in the order given.
 * Returns the archive and, in the same order, the byte offset of each entry's content within it.
 */
export function writeTar(entries: readonly TarEntry[]): { tar: Uint8Array; offsets: number[] } {
  const placed: Placed[] = [];
  let end = 0;
  for (const entry of entries) {
    const one = place(entry, end);
    placed.push(one);
    end = one.offset + padded(entry.content.length);
  }
  // An own buffer, not one of Node's shared pool: it can be handed to another thread without a copy.
  const out = Buffer.from(new ArrayBuffer(end + END));
  for (const { entry, name, prefix, pax, start, offset } of placed) {
    if (pax.length > 0) {
      writeHeader(out, start, { name: PAX_NAME, prefix: '', mode: '0644', size: pax.length, type: 'x' });
      out.set(pax, start + BLOCK);
    }
    writeHeader(out, offset - BLOCK, { name, prefix, mode: entry.mode, size: entry.content.length, type: '0' });
    out.set(entry.content, offset);
  }
  return { tar: out, offsets: placed.map((one) => one.offset) };
}
