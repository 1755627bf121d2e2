import { isUtf8 } from 'node:buffer';
import { lstat, readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { systemClock } from '../base/clock.ts';
import { stalled } from '../base/errors.ts';
import type { SkillTree } from '../protocol/types.ts';
import { type DiscoveryProblem, discover, skillMdOf } from './discover.ts';
import { localEnvironment } from './environment.ts';
import { type LocalGit, openLocalGit } from './localgit.ts';
import type { Blob, TreeEntry } from './port.ts';
import { readSkillTree } from './skilltree.ts';

/** A skill directory on this machine. */
interface LocalSkill {
  /** From the argument to the directory, `/`-separated; `.` when the argument is the skill itself. */
  path: string;
  hasSkillMd: boolean;
  /** Reads it like the operator would read it from Git. */
  read(signal: AbortSignal): Promise<SkillTree>;
}

/** What stands at a path: a marketplace, a plugin or one skill. */
export interface LocalContent extends AsyncDisposable {
  kind: 'marketplace' | 'plugin' | 'skill';
  /** `git-index`: the tracked files with the index's modes and bytes; `folder`: every file. */
  origin: 'git-index' | 'folder';
  skills: LocalSkill[];
  problems: DiscoveryProblem[];
}

/** A tree of this machine, spoken to like a tree of a mirror; ids are its own. */
interface LocalReader extends AsyncDisposable {
  tree(path: string, signal: AbortSignal): Promise<{ oid: string; entries: TreeEntry[] } | undefined>;
  treeByOid(oid: string, signal: AbortSignal): Promise<TreeEntry[] | undefined>;
  blob(oid: string, maxBytes: number, signal: AbortSignal): Promise<Blob>;
}

/** Reads a plain folder; ids are absolute paths. Symbolic links are never followed below the root. */
class FolderReader implements LocalReader {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async tree(path: string, signal: AbortSignal): Promise<{ oid: string; entries: TreeEntry[] } | undefined> {
    const oid = join(this.#root, path);
    const entries = await this.treeByOid(oid, signal);
    return entries && { oid, entries };
  }

  async treeByOid(oid: string, signal: AbortSignal): Promise<TreeEntry[] | undefined> {
    signal.throwIfAborted();
    const names = await readdir(Buffer.from(oid), { encoding: 'buffer' }).catch(() => undefined);
    if (!names) return undefined;
    const entries = await Promise.all(names.map((name) => this.#entry(oid, name)));
    return entries.filter((entry) => entry !== undefined).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async blob(oid: string, maxBytes: number, signal: AbortSignal): Promise<Blob> {
    signal.throwIfAborted();
    // A name that is not UTF-8 is reported, not read.
    if (oid === '') return { size: -1 };
    const stats = await lstat(oid);
    if (stats.isSymbolicLink()) {
      const content = await readlink(oid, { encoding: 'buffer' });
      return content.length <= maxBytes ? { size: content.length, content } : { size: content.length };
    }
    if (stats.size > maxBytes) return { size: stats.size };
    const content = await readFile(oid, { signal });
    return { size: content.length, content };
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  /** Undefined for what Git could not hold either: devices, pipes, sockets, a .git directory. */
  async #entry(parent: string, raw: Buffer): Promise<TreeEntry | undefined> {
    if (!isUtf8(raw)) return { name: raw.toString('latin1'), rawName: new Uint8Array(raw), mode: '100644', oid: '' };
    const name = raw.toString('utf8');
    const path = join(parent, name);
    const stats = await lstat(path).catch(() => undefined);
    if (!stats || name === '.git') return undefined;
    if (stats.isDirectory()) return { name, mode: '040000', oid: path };
    if (stats.isSymbolicLink()) return { name, mode: '120000', oid: path };
    if (!stats.isFile()) return undefined;
    return { name, mode: stats.mode & 0o100 ? '100755' : '100644', oid: path };
  }
}

function kindOf(entries: TreeEntry[]): LocalContent['kind'] {
  const has = (name: string) => entries.some((entry) => entry.name === name && entry.mode !== '100644');
  if (skillMdOf(entries) === 'present') return 'skill';
  if (has('plugins')) return 'marketplace';
  return has('skills') ? 'plugin' : 'skill';
}

/** Shows a plugin's or a skill's directory as a marketplace that holds nothing else, so that one set of rules finds skills. */
function wrapped(
  reader: LocalReader,
  kind: LocalContent['kind'],
  plugin: string,
): Pick<LocalReader, 'tree' | 'treeByOid'> {
  if (kind === 'marketplace') return reader;
  const only = (name: string, oid: string): TreeEntry[] => [{ name, mode: '040000', oid }];
  return {
    tree: async (_path, signal) =>
      (await reader.tree('', signal)) ? { oid: '', entries: only('plugins', ':plugins') } : undefined,
    treeByOid: async (oid, signal) => {
      if (oid === ':plugins') return only(plugin, ':plugin');
      if (oid === ':plugin') return (await reader.tree('', signal))?.entries;
      return reader.treeByOid(oid, signal);
    },
  };
}

async function list(
  reader: LocalReader,
  root: string,
  kind: LocalContent['kind'],
  rootEntries: TreeEntry[],
  signal: AbortSignal,
) {
  if (kind === 'skill') {
    const tree = (await reader.tree('', signal))?.oid ?? '';
    const wrongCase = skillMdOf(rootEntries);
    const problems: DiscoveryProblem[] = [];
    if (typeof wrongCase === 'object') {
      problems.push({
        path: '.',
        reason: 'SkillMdWrongCase',
        message: `${wrongCase.wrongCase} is not read: rename it to SKILL.md`,
      });
    } else if (wrongCase === 'missing') {
      problems.push({
        path: '.',
        reason: 'SkillMdMissing',
        message:
          'the directory has no SKILL.md, no skills/ and no plugins/: add a SKILL.md, or give the path of a skill, a plugin or a marketplace',
      });
    }
    const found = { path: '.', location: basename(root), tree, hasSkillMd: wrongCase === 'present' };
    return { skills: [found], problems };
  }
  const plugin = basename(root);
  const { skills, problems } = await discover(wrapped(reader, kind, plugin), {}, signal);
  const prefix = kind === 'plugin' ? `plugins/${plugin}/` : '';
  const local = (path: string) => path.slice(path.startsWith(prefix) ? prefix.length : 0);
  return {
    skills: skills.map((skill) => ({
      path: local(skill.path),
      location: skill.path,
      tree: skill.tree,
      hasSkillMd: skill.hasSkillMd,
    })),
    problems: problems.map((problem) => ({ ...problem, path: local(problem.path) })),
  };
}

/**
 * Opens a skill, a plugin or a marketplace on the local disk with the operator's own rules of discovery.
 * In a Git work tree that tracks files there, the index decides: tracked files, their modes and staged bytes. Elsewhere all files count.
 * @param gitPath the git program; without one, or outside of a work tree, the folder is read.
 * @throws PolicyError `PathNotFound` (Stalled) when there is no such directory.
 */
export async function openLocal(path: string, signal: AbortSignal, gitPath = 'git'): Promise<LocalContent> {
  const root = await realpath(resolve(path)).catch(() => undefined);
  const stats = root === undefined ? undefined : await lstat(root);
  if (root === undefined || !stats?.isDirectory()) {
    throw stalled('PathNotFound', `${path} is no directory: give the path of a skill, a plugin or a marketplace`);
  }
  const git: LocalGit | undefined = await openLocalGit(
    { root, gitPath, env: localEnvironment('/nonexistent'), clock: systemClock },
    signal,
  );
  const reader: LocalReader = git ?? new FolderReader(root);
  try {
    const entries = (await reader.tree('', signal))?.entries ?? [];
    const kind = kindOf(entries);
    const { skills, problems } = await list(reader, root, kind, entries, signal);
    return {
      kind,
      origin: git ? 'git-index' : 'folder',
      skills: skills.map(({ path: shown, location, tree, hasSkillMd }) => ({
        path: shown,
        hasSkillMd,
        read: (inner) => readSkillTree(reader, { tree, path: location }, inner),
      })),
      problems,
      [Symbol.asyncDispose]: () => reader[Symbol.asyncDispose](),
    };
  } catch (error) {
    await reader[Symbol.asyncDispose]();
    throw error;
  }
}
