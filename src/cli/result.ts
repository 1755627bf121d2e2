import type { Engine, Finding, Runtime, Tier } from '../protocol/types.ts';

/** What `skillctl validate` learnt about one skill; the shape of an entry of `skills` in the JSON output. */
export interface SkillResult {
  /** The PATH argument under which the skill was found, as typed. */
  root: string;
  /** The skill's directory relative to `root`; `.` when `root` is the skill itself. */
  path: string;
  /** Where the files came from: Git's index (modes and content as committed or staged), or the folder on disk. */
  readFrom: 'git-index' | 'folder';
  valid: boolean;
  violations: Finding[];
  warnings: Finding[];
  /** Present when the frontmatter is valid. */
  name?: string;
  description?: string;
  runtime?: Runtime;
  tier?: Tier;
  engine?: Engine;
  /** Present when the skill is valid: 64 hex digits, the same that the operator computes, and its first 12. */
  digest?: string;
  version?: string;
  /** Number of files and their total size in bytes, private ones included. */
  files?: number;
  bytes?: number;
}

/** Something about the layout that keeps a directory from being a skill; the shape of an entry of `problems`. */
interface ProblemResult {
  root: string;
  /** Relative to `root`. */
  path: string;
  reason: string;
  message: string;
}

/** The whole outcome of `skillctl validate`. */
export interface ValidateResult {
  skills: SkillResult[];
  problems: ProblemResult[];
}

/** One line of output: a finding or a problem with the path that a reader in the current directory can open. */
export interface Diagnostic {
  level: 'error' | 'warning';
  code: string;
  /** Relative to the current directory, `/`-separated. */
  file: string;
  /** True when `file` is a directory, because the rule concerns no single file. */
  isDirectory: boolean;
  line?: number;
  column?: number;
  message: string;
  hint?: string;
}

/** Joins path pieces with `/`, dropping `.` and empty ones; a leading `/` or `..` is kept. */
export function joinPath(...pieces: string[]): string {
  const parts = pieces.flatMap((piece, index) =>
    piece.split('/').filter((part, at) => part !== '.' && (part !== '' || (index === 0 && at === 0))),
  );
  const joined = parts.join('/');
  if (joined === '' && pieces[0]?.startsWith('/')) return '/';
  return joined === '' ? '.' : joined;
}

function ofFinding(skill: SkillResult, finding: Finding, level: Diagnostic['level']): Diagnostic {
  const directory = joinPath(skill.root, skill.path);
  return {
    level,
    code: finding.code,
    file: joinPath(directory, finding.path),
    isDirectory: finding.path === '',
    ...(finding.line === undefined ? {} : { line: finding.line }),
    ...(finding.column === undefined ? {} : { column: finding.column }),
    message: finding.message,
    hint: finding.hint,
  };
}

/** All diagnostics in the order of output: skills as they were found, each skill's violations before its warnings, then problems. */
export function diagnosticsOf(result: ValidateResult): Diagnostic[] {
  const fromSkills = result.skills.flatMap((skill) => [
    ...skill.violations.map((finding) => ofFinding(skill, finding, 'error')),
    ...skill.warnings.map((finding) => ofFinding(skill, finding, 'warning')),
  ]);
  const fromProblems = result.problems.map(
    (problem): Diagnostic => ({
      level: 'error',
      code: problem.reason,
      file: joinPath(problem.root, problem.path),
      isDirectory: true,
      message: problem.message,
    }),
  );
  return [...fromSkills, ...fromProblems];
}

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`;

/** The last line of the human and GitHub output, for example `9 skills: 8 valid, 1 invalid (1 error, 0 warnings)`. */
export function summaryOf(result: ValidateResult): string {
  const valid = result.skills.filter((skill) => skill.valid).length;
  const all = diagnosticsOf(result);
  const errors = all.filter((one) => one.level === 'error').length;
  const counts = `${count(errors, 'error')}, ${count(all.length - errors, 'warning')}`;
  return `${count(result.skills.length, 'skill')}: ${valid} valid, ${result.skills.length - valid} invalid (${counts})`;
}

/** True when nothing is wrong: every skill valid and no problem in the layout. Warnings do not count. */
export const isClean = (result: ValidateResult): boolean =>
  result.problems.length === 0 && result.skills.every((skill) => skill.valid);
