import type { Findings } from './findings.ts';
import { LIMITS, SKILLENV } from './names.ts';
import { count, show } from './text.ts';

const CONTROL = /\p{Cc}/u;

/** True when a package may not hand the file to a model (decisions: protected files): by name, in any case, at any depth. */
export function isProtectedPath(path: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  return name.includes(SKILLENV) || /^\..*\.dockerfile$/s.test(name);
}

/**
 * Checks one path of a package and notes every rule that it breaks.
 * Returns true when the path is clean enough to be compared with the others.
 */
export function checkPath(path: string, out: Findings): boolean {
  const at = { path: show(path, LIMITS.pathBytes) };
  const name = show(path);
  const size = Buffer.byteLength(path);
  const segments = size <= LIMITS.pathBytes * 64 ? path.split('/') : [];
  let clean = true;
  if (size > LIMITS.pathBytes) {
    clean = false;
    const message = `the path ${name} has ${count(size)} bytes, the limit is ${count(LIMITS.pathBytes)}`;
    out.add('PathTooLong', at, message, 'shorten the names of the file and its directories');
  }
  if (segments.length > LIMITS.pathLevels) {
    clean = false;
    const message = `the path ${name} has ${count(segments.length)} levels, the limit is ${LIMITS.pathLevels}`;
    out.add('PathTooDeep', at, message, 'move the file up');
  }
  if (CONTROL.test(path)) {
    clean = false;
    out.add('PathControlCharacter', at, `the path ${name} contains a control character`, 'rename the file');
  }
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..')) {
    clean = false;
    out.add('PathInvalid', at, `the path ${name} is absolute or has an empty, . or .. segment`, 'rename the file');
  }
  return clean;
}

/** What two paths have in common when a file system ignores case and Unicode normalisation; upper case first, so that ſ and ß meet their simple forms. */
const folded = (path: string): string => path.toUpperCase().toLowerCase().normalize('NFC');

/** Notes clean paths that a case-insensitive or normalising file system could not keep apart, and a file where another path needs a directory. */
export function checkCollisions(sortedPaths: readonly string[], out: Findings): void {
  const files = new Map<string, string>();
  const note = (path: string, other: string, why: string) =>
    out.add(
      'PathCollision',
      { path },
      `the path ${show(path)} ${why} ${show(other)}`,
      'rename or delete one of the two',
    );
  for (const path of sortedPaths) {
    const key = folded(path);
    const other = files.get(key);
    if (other === path) note(path, other, 'appears twice, next to');
    else if (other !== undefined) note(path, other, 'differs only in case or Unicode normalisation from');
    else files.set(key, path);
  }
  for (const path of sortedPaths) {
    const key = folded(path);
    for (let end = key.lastIndexOf('/'); end > 0; end = key.lastIndexOf('/', end - 1)) {
      const other = files.get(key.slice(0, end));
      if (other !== undefined) note(path, other, 'lies below a directory that has the name of the file');
    }
  }
}

/** Outcome of `checkToolPath`: a clean path below the skill's root, or the answer for the caller. */
export type ToolPath =
  | { ok: true; path: string; version?: string }
  | { ok: false; reason: 'PathRefused' | 'PathProtected'; message: string };

const TOOL_URI = /^tfs-skill:\/\/([^/]+)\/([^/]+)\/([0-9a-f]{12})\/\/?(.*)$/s;

/**
 * Decides whether the `skills` tool may look a path up (decisions: the skills tool): relative to the skill's root, or the
 * `tfs-skill://<namespace>/<skill>/<version>/…` form of the same skill, whose `version` is then the one to read.
 * Existence, access and size are the caller's checks; the protected answer is word for word the contract's.
 */
export function checkToolPath(input: string, skill: { namespace: string; name: string }): ToolPath {
  let path = input;
  let version: string | undefined;
  if (input.startsWith('tfs-skill:')) {
    const match = TOOL_URI.exec(input);
    if (!match) return refused(input, 'is not of the form tfs-skill://<namespace>/<skill>/<version>/<file>');
    if (match[1] !== skill.namespace || match[2] !== skill.name) return refused(input, 'belongs to another skill');
    version = match[3];
    path = match[4] ?? '';
  }
  const problem = toolPathProblem(path);
  if (problem) return refused(input, problem);
  if (isProtectedPath(path))
    return { ok: false, reason: 'PathProtected', message: '403 access denied: protected file' };
  return version === undefined ? { ok: true, path } : { ok: true, path, version };
}

const refused = (input: string, why: string): ToolPath => ({
  ok: false,
  reason: 'PathRefused',
  message: `the path "${show(input)}" ${why}; give a path relative to the skill's root, such as references/guide.md`,
});

function toolPathProblem(path: string): string | undefined {
  if (path === '') return 'names no file';
  if (path.length > LIMITS.pathBytes) return `is longer than ${LIMITS.pathBytes} bytes`;
  if (path.includes('\0')) return 'contains a NUL character';
  if (!path.isWellFormed() || path.includes('\ufffd')) return 'is not valid UTF-8';
  if (path.includes('\\')) return 'contains a backslash';
  if (path.startsWith('/')) return 'is absolute';
  const segments = path.split('/');
  if (segments.includes('..') || segments.includes('.')) return 'has a . or .. segment';
  return segments.includes('') ? 'has an empty segment' : undefined;
}
