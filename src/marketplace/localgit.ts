import { isUtf8 } from 'node:buffer';
import { execFile } from 'node:child_process';
import type { Clock } from '../base/clock.ts';
import { stalled } from '../base/errors.ts';
import { Objects } from './objects.ts';
import type { Blob, TreeEntry } from './port.ts';
import { isOid } from './refs.ts';

/** Where a work tree is and how to run git there. */
export interface LocalGitOptions {
  /** Absolute path of a directory inside of the work tree, symbolic links resolved. */
  root: string;
  gitPath: string;
  /** From `localEnvironment`. */
  env: Record<string, string>;
  clock: Clock;
}

/** The index of a work tree below one directory, spoken to like a tree of a mirror; trees are named by their paths. */
export interface LocalGit extends AsyncDisposable {
  tree(path: string, signal: AbortSignal): Promise<{ oid: string; entries: TreeEntry[] } | undefined>;
  treeByOid(oid: string, signal: AbortSignal): Promise<TreeEntry[] | undefined>;
  blob(oid: string, maxBytes: number, signal: AbortSignal): Promise<Blob>;
}

const TIMEOUT_MS = 30_000;
const MAX_OUTPUT = 256 * 1024 * 1024;
const LINE = /^(100644|100755|120000|160000) ([0-9a-f]+) ([0-3])$/;
const TREE_PREFIX = 'tree:';

/** Standard output, or undefined when git is absent, fails, or is not in a work tree. */
async function output(options: LocalGitOptions, args: string[], signal: AbortSignal): Promise<Buffer | undefined> {
  const { root, gitPath, env } = options;
  // The author's own work tree may belong to another user (a mounted volume); nothing of it is run.
  const safe = ['-c', 'safe.directory=*', '-C', root, ...args];
  const { promise, resolve, reject } = Promise.withResolvers<Buffer | undefined>();
  execFile(
    gitPath,
    safe,
    { env, signal, timeout: TIMEOUT_MS, maxBuffer: MAX_OUTPUT, encoding: 'buffer' },
    (error, stdout) => {
      if (signal.aborted) reject(signal.reason);
      else resolve(error ? undefined : stdout);
    },
  );
  return promise;
}

/** Groups the records of `git ls-files -s -z` (paths relative to the directory) into one listing per directory. */
function parseIndex(records: Buffer): Map<string, TreeEntry[]> {
  const trees = new Map<string, TreeEntry[]>();
  const known = new Set<string>();
  for (let at = 0; at < records.length; ) {
    const end = records.indexOf(0, at);
    const tab = records.indexOf(0x09, at);
    const line = LINE.exec(records.toString('latin1', at, tab));
    const raw = records.subarray(tab + 1, end);
    const path = isUtf8(raw) ? raw.toString('utf8') : raw.toString('latin1');
    at = end + 1;
    if (!line) continue;
    const [, mode, oid, stage] = line as unknown as [string, TreeEntry['mode'], string, string];
    if (stage !== '0')
      throw stalled(
        'GitOperationFailed',
        `${path} has merge conflicts in the index: resolve them and "git add" the file`,
      );
    if (!isOid(oid))
      throw stalled(
        'GitOperationFailed',
        'the repository uses SHA-256 object ids, which are not supported: use a SHA-1 repository',
      );
    addEntry(trees, known, path, { mode, oid, raw: isUtf8(raw) ? undefined : raw });
  }
  return trees;
}

function addEntry(
  trees: Map<string, TreeEntry[]>,
  known: Set<string>,
  path: string,
  { mode, oid, raw }: { mode: TreeEntry['mode']; oid: string; raw: Buffer | undefined },
): void {
  const slash = path.lastIndexOf('/');
  const parent = path.slice(0, Math.max(slash, 0));
  const name = path.slice(slash + 1);
  const entries = trees.get(parent) ?? [];
  trees.set(parent, entries);
  const rawName = raw?.subarray(raw.lastIndexOf(0x2f) + 1);
  entries.push(rawName ? { name, mode, oid, rawName: new Uint8Array(rawName) } : { name, mode, oid });
  if (slash < 0 || known.has(parent)) return;
  known.add(parent);
  addEntry(trees, known, parent, { mode: '040000', oid: `${TREE_PREFIX}${parent}`, raw: undefined });
}

/**
 * The index below a directory, or undefined when it is no Git work tree or tracks nothing there.
 * @throws PolicyError `GitOperationFailed` (Stalled) for unresolved merges and SHA-256 repositories.
 */
export async function openLocalGit(options: LocalGitOptions, signal: AbortSignal): Promise<LocalGit | undefined> {
  const directory = await output(options, ['rev-parse', '--absolute-git-dir'], signal);
  const records = directory && (await output(options, ['ls-files', '--stage', '-z'], signal));
  if (!records || records.length === 0) return undefined;
  const trees = parseIndex(records);
  const env = { ...options.env, GIT_DIR: directory.toString('utf8').replace(/\n$/, '') };
  const objects = new Objects({ gitPath: options.gitPath, env, cwd: options.root, clock: options.clock });
  const listing = (path: string) => trees.get(path);
  return {
    tree: async (path) => {
      const entries = listing(path);
      return entries && { oid: `${TREE_PREFIX}${path}`, entries };
    },
    treeByOid: async (oid) => listing(oid.slice(TREE_PREFIX.length)),
    blob: async (oid, maxBytes, inner) => {
      const info = await objects.info(oid, inner);
      if (info?.type !== 'blob') return { size: -1 };
      if (info.size > maxBytes) return { size: info.size };
      const content = (await objects.contents(oid, inner))?.content;
      return content ? { size: info.size, content } : { size: info.size };
    },
    [Symbol.asyncDispose]: async () => objects.close(),
  };
}
