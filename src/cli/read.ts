import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { PolicyError, stalled } from '../base/errors.ts';
import { type LocalContent, openLocal } from '../marketplace/local.ts';
import type { SkillTree } from '../protocol/types.ts';
import { printable } from './terminal.ts';

/** A PATH argument as the commands see it. */
export interface LocalRoot extends AsyncDisposable {
  /** The argument as typed. */
  root: string;
  kind: LocalContent['kind'];
  /** Git's index (staged content and modes), or every file of the folder on disk. */
  readFrom: LocalContent['origin'];
  /** Directories with a SKILL.md; paths are relative to `root`, `.` is `root` itself. */
  skills: { path: string; read: (signal: AbortSignal) => Promise<SkillTree> }[];
  /** What keeps other directories from being skills; never empty when `skills` is. */
  problems: { path: string; reason: string; message: string }[];
}

async function requireDirectory(path: string, absolute: string): Promise<void> {
  const info = await stat(absolute).catch((error: NodeJS.ErrnoException) => error);
  if (info instanceof Error) {
    const why = info.code === 'ENOENT' ? 'does not exist' : `cannot be read (${info.code ?? 'unknown error'})`;
    throw stalled('PathNotFound', `${path} ${why}; give the directory of a skill, a plugin or a marketplace`);
  }
  if (!info.isDirectory()) {
    throw stalled('PathNotFound', `${path} is a file; give the directory of a skill, a plugin or a marketplace`);
  }
}

/** The operator would fetch a missing listing again; on a local disk it is a matter of permissions. */
function localError(error: unknown, path: string): unknown {
  if (!(error instanceof PolicyError) || error.reason !== 'MirrorCorrupt') return error;
  return stalled('PathInvalid', `cannot list every directory below ${path}; check its permissions`);
}

const noSkills = (kind: LocalRoot['kind']) => ({
  path: '.',
  reason: 'NoSkillsFound',
  message: `the ${kind} has no skill; add one as ${kind === 'plugin' ? '' : 'plugins/<plugin>/'}skills/<skill>/SKILL.md`,
});

/**
 * Opens a PATH argument, relative to `cwd`, with the operator's rules of discovery; dispose it when done.
 * @throws PolicyError when there is no such directory or it cannot be listed.
 */
export async function openRoot(path: string, cwd: string, signal: AbortSignal): Promise<LocalRoot> {
  const absolute = resolve(cwd, path);
  await requireDirectory(path, absolute);
  try {
    const content = await openLocal(absolute, signal);
    const skills = content.skills.filter((skill) => skill.hasSkillMd);
    const nothing = skills.length === 0 && content.problems.length === 0;
    return {
      root: path,
      kind: content.kind,
      readFrom: content.origin,
      skills: skills.map((skill) => ({
        path: skill.path,
        read: async (inner) => {
          try {
            return await skill.read(inner);
          } catch (error) {
            throw localError(error, path);
          }
        },
      })),
      problems: nothing ? [noSkills(content.kind)] : content.problems,
      [Symbol.asyncDispose]: () => content[Symbol.asyncDispose](),
    };
  } catch (error) {
    throw localError(error, path);
  }
}

/** One line about where the files came from: either way the author may expect something else. */
export const sourceNote = ({ root, readFrom }: LocalRoot): string =>
  readFrom === 'git-index'
    ? `note: ${printable(root)} is read from Git's index: content and modes as staged, so "git add" your changes first\n`
    : `note: ${printable(root)} has no files tracked by Git: all files, modes from disk\n`;
