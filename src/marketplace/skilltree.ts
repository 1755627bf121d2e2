import { retry, stalled } from '../base/errors.ts';
import type { SkillTree, TreeFile } from '../protocol/types.ts';
import type { TreeEntry, TreeReader } from './port.ts';

/** The part of a TreeReader that reading a skill needs. */
export type SkillReader = Pick<TreeReader, 'treeByOid' | 'blob'>;

/** Which skill to read. */
export interface SkillLocation {
  /** Id of the directory's tree object. */
  tree: string;
  /** From the source's root; the last segment is the directory's name. */
  path: string;
}

/** Bounds of the protocol beyond which contents are not read; the entries still come, so that the count can be reported. */
export interface SkillLimits {
  files: number;
  bytes: number;
  levels: number;
}

/** Limits of the protocol (docs/spec/skill-protocol.md, "Files of a package"). */
export const SKILL_LIMITS: SkillLimits = { files: 10_000, bytes: 60 * 1024 * 1024, levels: 32 };

interface Found {
  file: TreeFile;
  oid: string;
  directory: boolean;
}

/** Read even when the skill as a whole is too large: their own rules are reported as well. Sizes in bytes, above the rules' limits. */
const ALWAYS_READ = new Map([
  ['SKILL.md', 1024 * 1024 + 1],
  ['.skillenv', 64 * 1024 + 1],
  ['.cubesandbox.dockerfile', 256 * 1024 + 1],
  ['.e2b.dockerfile', 256 * 1024 + 1],
]);
/** Bytes of contents asked for at once, and objects. */
const WINDOW_BYTES = 4 * 1024 * 1024;
const WINDOW_ITEMS = 256;
/** A listing may be larger than the limit by this factor before the walk ends. */
const SLACK = 2;

const decoder = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);

function join(parent: Found | undefined, entry: TreeEntry): Pick<TreeFile, 'path' | 'rawPath'> {
  if (!parent) return entry.rawName ? { path: entry.name, rawPath: entry.rawName } : { path: entry.name };
  const { path, rawPath } = parent.file;
  if (!rawPath && !entry.rawName) return { path: `${path}/${entry.name}` };
  const head = rawPath ? decoder(rawPath) : Buffer.from(path);
  const tail = entry.rawName ? decoder(entry.rawName) : Buffer.from(entry.name);
  const raw = Buffer.concat([head, Buffer.from('/'), tail]);
  return { path: raw.toString('latin1'), rawPath: new Uint8Array(raw) };
}

/** Listings asked for at once. */
const LISTINGS = 64;

const found = (parent: Found | undefined, entry: TreeEntry): Found =>
  entry.mode === '040000'
    ? { file: { ...join(parent, entry), mode: '100644', size: -1 }, oid: entry.oid, directory: true }
    : { file: { ...join(parent, entry), mode: entry.mode, size: 0 }, oid: entry.oid, directory: false };

/** The entries of several directories in order; undefined is the skill's own. */
async function listings(
  reader: SkillReader,
  location: SkillLocation,
  parents: (Found | undefined)[],
  signal: AbortSignal,
): Promise<Found[]> {
  const all = await Promise.all(
    parents.map(async (parent) => {
      const entries = await reader.treeByOid(parent?.oid ?? location.tree, signal);
      if (entries) return entries.map((entry) => found(parent, entry));
      throw retry(
        'MirrorCorrupt',
        `a directory of ${location.path} is missing in the local mirror: the operator fetches it anew by itself`,
      );
    }),
  );
  return all.flat();
}

/**
 * All files below the tree, level by level, so that the root's come first and a cut loses the deepest.
 * A directory below the last allowed level stands for its files: its path alone breaks the rule.
 */
async function walk(
  reader: SkillReader,
  location: SkillLocation,
  limits: SkillLimits,
  signal: AbortSignal,
): Promise<Found[]> {
  const most = limits.files * SLACK;
  const files: Found[] = [];
  const queue: { parent: Found | undefined; depth: number }[] = [{ parent: undefined, depth: 0 }];
  for (let at = 0; at < queue.length && files.length <= most; ) {
    const depth = queue[at]?.depth ?? 0;
    const batch = queue.slice(at, at + LISTINGS).filter((directory) => directory.depth === depth);
    at += batch.length;
    const entries = await listings(
      reader,
      location,
      batch.map(({ parent }) => parent),
      signal,
    );
    for (const entry of entries) {
      if (entry.directory && depth < limits.levels) queue.push({ parent: entry, depth: depth + 1 });
      else files.push(entry);
    }
    if (queue.length > most) {
      throw stalled('RepositoryTooLarge', `${location.path} has more than ${most} directories: remove some`);
    }
  }
  return files;
}

/** Runs `work` on all items, a bounded amount at a time. */
async function inWindows(
  items: Found[],
  weight: (item: Found) => number,
  work: (item: Found) => Promise<void>,
): Promise<void> {
  let window: Promise<void>[] = [];
  let bytes = 0;
  for (const item of items) {
    const next = weight(item);
    if (window.length > 0 && (window.length >= WINDOW_ITEMS || bytes + next > WINDOW_BYTES)) {
      await Promise.all(window);
      window = [];
      bytes = 0;
    }
    window.push(work(item));
    bytes += next;
  }
  await Promise.all(window);
}

/**
 * Reads one skill's directory for validation: all entries with sizes, contents only while the whole stays within the limits.
 * Above them SKILL.md, .skillenv and the two Dockerfiles are still read. Gitlinks come without content, symlinks with their target;
 * a blob that the mirror does not hold has size −1.
 * @throws PolicyError `MirrorCorrupt` (Retry) when a listing is missing; `RepositoryTooLarge` (Stalled) for listings beyond counting.
 */
export async function readSkillTree(
  reader: SkillReader,
  location: SkillLocation,
  signal: AbortSignal,
  limits: SkillLimits = SKILL_LIMITS,
): Promise<SkillTree> {
  const files = await walk(reader, location, limits, signal);
  const blobs = files.filter(({ file, directory }) => !directory && file.mode !== '160000');
  await inWindows(
    blobs,
    () => 0,
    async ({ file, oid }) => {
      file.size = (await reader.blob(oid, 0, signal)).size;
    },
  );
  const total = blobs.reduce((sum, { file }) => sum + Math.max(file.size, 0), 0);
  const fits = files.length <= limits.files && total <= limits.bytes;
  const cap = ({ file }: Found) => (fits ? file.size : (ALWAYS_READ.get(file.path) ?? -1));
  const wanted = blobs.filter((item) => item.file.size >= 0 && item.file.size <= cap(item));
  await inWindows(
    wanted,
    ({ file }) => file.size,
    async ({ file, oid }) => {
      const { content } = await reader.blob(oid, file.size, signal);
      if (content) file.content = content;
    },
  );
  const directory = location.path.slice(location.path.lastIndexOf('/') + 1);
  return { directory, path: location.path, files: files.map(({ file }) => file) };
}
