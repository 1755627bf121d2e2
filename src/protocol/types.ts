/** Types that the pure rules of the SKILL protocol v1 take and give. Source: the protocol §2–§7 and docs/spec/skill-protocol.md. */

/** The seven values of `runtime` (§6.1, §14.2). */
export const RUNTIMES = [
  'prompt-only',
  'cubesandbox::python',
  'cubesandbox::node',
  'e2b::python',
  'e2b::node',
  'cubesandbox',
  'e2b',
] as const;
export type Runtime = (typeof RUNTIMES)[number];
export type Engine = 'cubesandbox' | 'e2b';
/** 0: no sandbox · 1: platform template · 2: bring your own Dockerfile. */
export type Tier = 0 | 1 | 2;

/** Git's modes that can stand in a tree below a skill. */
export type GitMode = '100644' | '100755' | '120000' | '160000';

/**
 * One entry below the skill's directory, as the source gives it.
 * `content` is absent when it was not read: a gitlink, or a blob above the limits (then `size` says how large, −1: larger than the mirror holds).
 */
export interface TreeFile {
  /** Relative to the skill's directory, `/`-separated, bytes decoded as latin1 when `rawPath` is set. */
  path: string;
  /** Set only when the path is not valid UTF-8: its bytes. */
  rawPath?: Uint8Array;
  mode: GitMode;
  size: number;
  content?: Uint8Array;
}

/** A skill directory as the source gives it. */
export interface SkillTree {
  /** The directory's own name, which must equal `name`. */
  directory: string;
  /** Path of the directory from the source's root, for messages: `plugins/docs/skills/pdf`. */
  path: string;
  files: TreeFile[];
}

/** A broken rule (violation) or something the author should know (warning). */
export interface Finding {
  /** Stable code from the catalogue in violations.ts. */
  code: string;
  /** File, relative to the skill's directory; `''` is the directory itself. */
  path: string;
  /** 1-based; absent where the rule concerns the file as a whole. */
  line?: number;
  column?: number;
  message: string;
  /** What to type. */
  hint: string;
}

/** A file of a valid package: symlinks resolved to copies, mode normalised. */
export interface PackageFile {
  path: string;
  mode: '0644' | '0755';
  content: Uint8Array;
}

/** The parsed frontmatter of a valid skill. */
export interface Frontmatter {
  name: string;
  description: string;
  license?: string;
  compatibility?: string;
  /** Source text of the mapping, never re-serialised. */
  metadata?: string;
  /** As written: a string, or the list. */
  allowedTools?: string | string[];
  runtime: Runtime;
  /** The frontmatter's own text between the fences, LF-normalised. */
  source: string;
}

/** The outcome of validating one skill: all violations, not the first. */
export interface SkillReport {
  valid: boolean;
  violations: Finding[];
  warnings: Finding[];
  /** Present when the frontmatter itself is valid, even if other rules are broken. */
  frontmatter?: Frontmatter;
  /** Present when `valid`: sorted by path (byte order). */
  files?: PackageFile[];
}
