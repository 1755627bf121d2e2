import { randomBytes } from 'node:crypto';
import { lstat, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { stalled } from '../base/errors.ts';
import type { BuiltPackage } from '../store/package.types.ts';
import { checkSkill } from './check.ts';
import { formatHuman } from './formats/human.ts';
import { formatJson } from './formats/json.ts';
import { EXIT, type ExitCode, type Io } from './io.ts';
import { openRoot, sourceNote } from './read.ts';
import type { SkillResult } from './result.ts';
import { printable } from './terminal.ts';

/** What `skillctl pack --output json` prints. */
export interface PackResult {
  name: string;
  runtime: string;
  digest: string;
  version: string;
  /** Number of files and their total size in bytes, private ones included. */
  files: number;
  bytes: number;
  /** The archive: its path as typed, its size in bytes and SHA-256. */
  tar: { path: string; size: number; sha256: string };
  /** Files that count for the digest but are not in the archive. */
  leftOut: string[];
}

/** Replaces the file in one step, so that a reader never sees half an archive; anything but a regular file is left alone. */
async function writeWhole(path: string, shown: string, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  const present = await lstat(path).catch(() => undefined);
  if (present && !present.isFile()) {
    const what = present.isDirectory() ? 'a directory' : 'not a regular file';
    throw stalled('PathInvalid', `${shown} is ${what}; name a file after -o`);
  }
  const temporary = join(dirname(path), `.skillctl-${randomBytes(6).toString('hex')}.tmp`);
  try {
    await writeFile(temporary, bytes, { signal, flag: 'wx' });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    signal.throwIfAborted();
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    throw stalled('PathInvalid', `cannot write ${shown} (${code}); name a file in an existing, writable directory`);
  }
}

function summarise(result: SkillResult, built: BuiltPackage, path: string): PackResult {
  return {
    name: built.manifest.frontmatter.name,
    runtime: built.manifest.runtime,
    digest: built.digest,
    version: result.version ?? '',
    files: built.fileCount,
    bytes: built.byteCount,
    tar: { path, ...built.manifest.tar },
    leftOut: Object.values(built.manifest.private).map((part) => part.path),
  };
}

function describe(packed: PackResult): string {
  const lines: [string, string][] = [
    ['skill', `${packed.name} (${packed.runtime})`],
    ['digest', packed.digest],
    ['version', packed.version],
    ['files', `${packed.files}, ${packed.bytes} bytes`],
    ['written', `${printable(packed.tar.path)}, ${packed.tar.size} bytes, sha256 ${packed.tar.sha256}`],
  ];
  if (packed.leftOut.length > 0) lines.push(['left out', `${packed.leftOut.join(', ')} (kept apart by the operator)`]);
  return lines.map(([label, value]) => `${label.padEnd(9)} ${value}\n`).join('');
}

/** `skillctl pack`: writes the archive of one valid skill; an invalid one is reported like `validate` does and nothing is written. */
export async function pack(
  options: { skill: string; target: string; output: 'human' | 'json' },
  io: Io,
  signal: AbortSignal,
): Promise<ExitCode> {
  await using root = await openRoot(options.skill, io.cwd, signal);
  const [skill] = root.skills;
  if (root.kind !== 'skill' || !skill) {
    const what = root.kind === 'skill' ? 'no skill' : `a ${root.kind}`;
    throw stalled('PathInvalid', `${options.skill} is ${what}; name one skill, a directory with SKILL.md`);
  }
  io.err(sourceNote(root));
  const { result, built } = checkSkill(await skill.read(signal), root, skill.path);
  if (!built) {
    const report = { skills: [result], problems: [] };
    if (options.output === 'json') io.out(formatJson(report));
    else io.err(formatHuman(report, { colors: false }));
    return EXIT.violations;
  }
  await writeWhole(resolve(io.cwd, options.target), options.target, built.tar, signal);
  const packed = summarise(result, built, options.target);
  io.out(options.output === 'json' ? `${JSON.stringify(packed, undefined, 2)}\n` : describe(packed));
  return EXIT.ok;
}
