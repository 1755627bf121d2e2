/**
 * Reads the archives that this product writes and nothing else: regular files in ustar headers, with a pax record in front where a path
 * needs one (POSIX.1-2017 pax). Links, devices, directories and every other extension are refused.
 */
import { EXIT } from '../build/exits.ts';
import { LIMITS, PRIVATE_ROOT_FILES } from '../protocol/names.ts';
import { JobError } from './failure.ts';

/** One file of an archive; `content` is a view of the archive's bytes. */
export interface UnpackedFile {
  path: string;
  mode: 0o644 | 0o755;
  content: Uint8Array;
}

const BLOCK = 512;
const MAX_PAX = 4096;

const corrupt = (what: string): JobError => new JobError(EXIT.ContextCorrupt, `the package's archive ${what}`);

function text(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(end < 0 ? bytes : bytes.subarray(0, end));
  } catch {
    throw corrupt('has a name that is not UTF-8');
  }
}

function octal(bytes: Uint8Array): number {
  const digits = text(bytes).trim();
  if (!/^[0-7]{1,11}$/.test(digits)) throw corrupt('has a number that is not octal');
  return Number.parseInt(digits, 8);
}

interface Header {
  name: string;
  type: string;
  mode: number;
  size: number;
}

function readHeader(block: Uint8Array): Header {
  let sum = 0;
  for (let i = 0; i < BLOCK; i++) sum += i >= 148 && i < 156 ? 0x20 : (block[i] as number);
  if (octal(block.subarray(148, 156)) !== sum) throw corrupt('has a header with a wrong checksum');
  if (text(block.subarray(257, 263)) !== 'ustar') throw corrupt('has a header that is not ustar');
  const prefix = text(block.subarray(345, 500));
  const name = text(block.subarray(0, 100));
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    type: String.fromCharCode(block[156] as number),
    mode: octal(block.subarray(100, 108)),
    size: octal(block.subarray(124, 136)),
  };
}

/** The path of a pax header, which holds that one record. */
function paxPath(content: Uint8Array): string {
  const record = text(content);
  const [, length, path] = /^(\d{1,4}) path=([^\n]+)\n$/.exec(record) ?? [];
  if (path === undefined || Number(length) !== content.length) throw corrupt('has a pax header of another kind');
  return path;
}

function checkedPath(path: string): string {
  const segments = path.split('/');
  const unclean = segments.some((segment) => segment === '' || segment === '.' || segment === '..');
  const long = Buffer.byteLength(path) > LIMITS.pathBytes || segments.length > LIMITS.pathLevels;
  if (unclean || long || /[\p{Cc}\\]/u.test(path)) throw corrupt(`has the path ${JSON.stringify(path.slice(0, 200))}`);
  if (PRIVATE_ROOT_FILES.includes(path)) throw corrupt(`holds ${path}, which never enters a build`);
  return path;
}

function modeOf(mode: number): UnpackedFile['mode'] {
  if (mode !== 0o644 && mode !== 0o755) throw corrupt(`has a file of mode ${mode.toString(8)}`);
  return mode;
}

/** Calls `add` for every entry until the two zero blocks that end an archive. */
function eachEntry(tar: Uint8Array, add: (header: Header, content: Uint8Array) => void): void {
  for (let at = 0; ; ) {
    const block = tar.subarray(at, at + BLOCK);
    if (block.length < BLOCK) throw corrupt('ends too early');
    if (block.every((byte) => byte === 0)) {
      if (tar.length - at !== 2 * BLOCK || tar.subarray(at).some((byte) => byte !== 0)) {
        throw corrupt('has something behind its end');
      }
      return;
    }
    const header = readHeader(block);
    const content = tar.subarray(at + BLOCK, at + BLOCK + header.size);
    if (content.length < header.size) throw corrupt('ends within a file');
    add(header, content);
    at += BLOCK + Math.ceil(header.size / BLOCK) * BLOCK;
  }
}

/**
 * The files of an archive in its order. Pure; throws JobError `ContextCorrupt` for anything that this product would not have written:
 * other kinds of entries, unclean, doubled or private paths, more files or bytes than a skill may have.
 */
export function readPackageTar(tar: Uint8Array): UnpackedFile[] {
  const files = new Map<string, UnpackedFile>();
  let bytes = 0;
  let pax: string | undefined;
  eachEntry(tar, (header, content) => {
    if (header.type === 'x' && pax === undefined && header.size <= MAX_PAX) {
      pax = paxPath(content);
      return;
    }
    if (header.type !== '0') throw corrupt(`has an entry of type ${JSON.stringify(header.type)}, not a regular file`);
    const path = checkedPath(pax ?? header.name);
    pax = undefined;
    bytes += content.length;
    if (files.has(path)) throw corrupt(`holds ${path} twice`);
    files.set(path, { path, mode: modeOf(header.mode), content });
    if (files.size > LIMITS.files || bytes > LIMITS.packageBytes) throw corrupt('is larger than a skill may be');
  });
  if (pax !== undefined) throw corrupt('ends behind a pax header');
  return [...files.values()];
}
