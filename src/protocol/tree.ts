import type { Findings } from './findings.ts';
import { DOCKERFILES, LIMITS, SKILL_MD, SKILLENV } from './names.ts';
import { checkCollisions, checkPath } from './paths.ts';
import { LinkResolver, linkText } from './symlinks.ts';
import { bytes, comparePaths, count, shellWord, show } from './text.ts';
import type { PackageFile, SkillTree, TreeFile } from './types.ts';
import type { FindingCode } from './violations.ts';

/** The files of one skill after symlinks are resolved. */
export interface ResolvedTree {
  /** Sorted by path; what could not be read or resolved is left out and has its finding. */
  files: PackageFile[];
  /** Every path that stands in the directory as a file or a link, readable or not. */
  present: ReadonlySet<string>;
  /** Readable content by path. */
  content: ReadonlyMap<string, Uint8Array>;
}

interface Budget {
  limit: number;
  code: FindingCode;
  hint: string;
}

const DOCKERFILE_BUDGET: Budget = {
  limit: LIMITS.dockerfileBytes,
  code: 'DockerfileTooLarge',
  hint: 'move the content into scripts that the Dockerfile copies',
};
/** Root files with a limit of their own. */
const BUDGETS: ReadonlyMap<string, Budget> = new Map([
  [
    SKILL_MD,
    { limit: LIMITS.skillMdBytes, code: 'SkillMdTooLarge', hint: 'move details into files under references/' },
  ],
  [
    SKILLENV,
    { limit: LIMITS.skillenvBytes, code: 'SkillenvTooLarge', hint: 'keep only the variables that scripts read' },
  ],
  [DOCKERFILES.cubesandbox, DOCKERFILE_BUDGET],
  [DOCKERFILES.e2b, DOCKERFILE_BUDGET],
]);
const LFS_PREFIX = Buffer.from('version https://git-lfs.github.com/spec/v1\n');
const LFS_MAX_BYTES = 1024;

/** Checks every file of the tree, notes what breaks a rule, and gives the files that a package would hold. */
export function resolveTree(tree: SkillTree, out: Findings): ResolvedTree {
  const entries = namedEntries(tree, out);
  const withinLimits = checkCountAndSizes(tree, out);
  const resolver = new LinkResolver(entries);
  const files: PackageFile[] = [];
  let total = 0;
  for (const [path, entry] of entries) {
    const source = sourceOf(path, entry, resolver, out);
    if (!source) continue;
    if (isLfsPointer(source)) noteLfsPointer(path, out);
    else if (checkContent(path, source, withinLimits, out)) {
      total += source.content.length;
      files.push({ path, mode: source.mode === '100755' ? '0755' : '0644', content: source.content });
    }
  }
  if (withinLimits && total > LIMITS.packageBytes) notePackageTooLarge(total, ', links counted as copies', out);
  const content = new Map(files.map((file) => [file.path, file.content]));
  return { files, present: new Set(entries.keys()), content };
}

/** Entries by path in byte order, without those whose name is no text; equal paths keep the first. */
function namedEntries(tree: SkillTree, out: Findings): Map<string, TreeFile> {
  const entries = new Map<string, TreeFile>();
  const clean: string[] = [];
  for (const entry of tree.files.toSorted(compareEntries)) {
    if (entry.rawPath || !entry.path.isWellFormed()) {
      const name = show(entry.path);
      out.add('PathNotUtf8', { path: name }, `the path ${name} is not valid UTF-8`, 'rename the file with git mv');
      continue;
    }
    if (checkPath(entry.path, out)) clean.push(entry.path);
    if (!entries.has(entry.path)) entries.set(entry.path, entry);
  }
  checkCollisions(clean, out);
  return entries;
}

/** A total order, so that the order in which a source lists its files never shows. */
const compareEntries = (a: TreeFile, b: TreeFile): number =>
  comparePaths(a.path, b.path) ||
  Number(a.rawPath !== undefined) - Number(b.rawPath !== undefined) ||
  comparePaths(a.mode, b.mode) ||
  a.size - b.size ||
  Buffer.compare(a.content ?? new Uint8Array(), b.content ?? new Uint8Array());

function checkCountAndSizes(tree: SkillTree, out: Findings): boolean {
  const number = tree.files.length;
  if (number > LIMITS.files) {
    const message = `the skill has ${count(number)} files, the limit is ${count(LIMITS.files)}`;
    out.add('TooManyFiles', { path: '' }, message, 'remove files that the skill does not need');
  }
  const huge = tree.files.filter((file) => file.size < 0);
  for (const file of huge) {
    const path = show(file.path, LIMITS.pathBytes);
    const message = `${show(file.path)} alone is larger than ${bytes(LIMITS.packageBytes)}, the limit of a whole skill`;
    out.add('PackageTooLarge', { path }, message, 'remove the file, or let a script download it');
  }
  const total = tree.files.reduce((sum, file) => sum + Math.max(file.content?.length ?? file.size, 0), 0);
  if (huge.length === 0 && total > LIMITS.packageBytes) notePackageTooLarge(total, '', out);
  return number <= LIMITS.files && huge.length === 0 && total <= LIMITS.packageBytes;
}

function notePackageTooLarge(total: number, how: string, out: Findings): void {
  const message = `the files of the skill have ${bytes(total)} in all${how}, the limit is ${bytes(LIMITS.packageBytes)}`;
  out.add('PackageTooLarge', { path: '' }, message, 'remove or shrink large files, or let a script download them');
}

/** The entry whose bytes stand at `path`: itself, or what a link leads to; undefined with a finding otherwise. */
function sourceOf(path: string, entry: TreeFile, resolver: LinkResolver, out: Findings): TreeFile | undefined {
  if (entry.mode === '160000') {
    const message = `${show(path)} is a Git submodule, which is not followed`;
    out.add(
      'SubmoduleNotSupported',
      { path },
      message,
      `commit the files themselves: git rm --cached -- ${shellWord(path)}`,
    );
    return undefined;
  }
  if (entry.mode !== '120000') return entry;
  const end = resolver.resolve(path);
  if ('file' in end) return end.file;
  const target = linkText(entry);
  const to = target === undefined ? 'a target that' : `"${show(target)}", which`;
  const message = `${show(path)} is a symbolic link to ${to} ${end.problem}`;
  out.add('SymlinkInvalid', { path }, message, end.hint ?? 'replace the link with the file itself');
  return undefined;
}

function isLfsPointer(file: TreeFile): boolean {
  const { content } = file;
  return (
    content !== undefined &&
    content.length <= LFS_MAX_BYTES &&
    Buffer.compare(content.subarray(0, LFS_PREFIX.length), LFS_PREFIX) === 0
  );
}

function noteLfsPointer(path: string, out: Findings): void {
  const message = `${show(path)} is a Git LFS pointer, not the file`;
  out.add(
    'LfsPointer',
    { path },
    message,
    `store it in Git itself: git lfs untrack ${shellWord(path)}, then add it again`,
  );
}

/** True when the content is there and within the file's own limit. */
function checkContent(
  path: string,
  file: TreeFile,
  withinLimits: boolean,
  out: Findings,
): file is TreeFile & { content: Uint8Array } {
  const budget = BUDGETS.get(path);
  const size = file.content?.length ?? file.size;
  if (budget && size > budget.limit) {
    const message = `${path} has ${count(size)} bytes, the limit is ${count(budget.limit)}`;
    out.add(budget.code, { path }, message, budget.hint);
    return false;
  }
  // Above the limits of the whole skill a source stops reading; that finding says enough.
  if (file.content === undefined && withinLimits) {
    const message = `the content of ${show(path)} could not be read from the source`;
    out.add('ContentNotRead', { path }, message, 'commit the file again, and report it if this message stays');
  }
  return file.content !== undefined;
}
