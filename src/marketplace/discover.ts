import { retry, stalled } from '../base/errors.ts';
import type { Reason } from '../base/reasons.ts';
import { compileFilter } from './globs.ts';
import type { TreeEntry, TreeReader } from './port.ts';

/** The part of a TreeReader that discovery needs. */
export type DiscoverReader = Pick<TreeReader, 'tree' | 'treeByOid'>;

/** What a directory at skill depth holds in place of, or as, its SKILL.md. */
type SkillMd = 'present' | 'missing' | { wrongCase: string };

/** Remembers verdicts by tree id; content-addressed, so it may be shared by all sources and all commits. */
export interface SkillMdCache {
  get(tree: string): SkillMd | undefined;
  set(tree: string, verdict: SkillMd): void;
}

/** A directory `plugins/<plugin>/skills/<skill>`. */
export interface DiscoveredSkill {
  plugin: string;
  skill: string;
  /** From the source's root (for git-subdir: below its path): `plugins/docs/skills/pdf`. */
  path: string;
  /** Id of its tree object. */
  tree: string;
  /** False: no skill, unless its Skill exists already; then that one is invalid (`SkillMdMissing`) and stays served. */
  hasSkillMd: boolean;
}

/** Something at skill or plugin depth that cannot be a skill, and what to do about it. */
export interface DiscoveryProblem {
  path: string;
  reason: Reason;
  message: string;
}

/** All skills of a commit, sorted by path, and what stands in the way of others. */
export interface Discovery {
  skills: DiscoveredSkill[];
  problems: DiscoveryProblem[];
}

/** Which part of the commit to look at. */
export interface DiscoverOptions {
  /** Sub-directory that is the source's root; `''` or absent is the root of the commit. */
  path?: string;
  /** Globs over `<plugin>/<skill>`. */
  include?: string[];
  exclude?: string[];
  cache?: SkillMdCache;
}

const MAX_SKILLS = 20_000;
const MAX_PROBLEMS = 1_000;
const MAX_NAME_BYTES = 255;
/** Trees asked for at once; git answers them in one go. */
const BATCH = 256;
const PLUGIN_BATCH = 16;

/** A cache of at most `max` verdicts; the oldest fall out. */
export function createSkillMdCache(max = 50_000): SkillMdCache {
  const verdicts = new Map<string, SkillMd>();
  return {
    get: (tree) => verdicts.get(tree),
    set: (tree, verdict) => {
      verdicts.set(tree, verdict);
      if (verdicts.size > max) verdicts.delete(verdicts.keys().next().value as string);
    },
  };
}

/** What the entries of a directory at skill depth say about SKILL.md; exactly this name, a file or a link to one. */
export function skillMdOf(entries: TreeEntry[]): SkillMd {
  const files = entries.filter(({ mode }) => mode !== '040000' && mode !== '160000');
  if (files.some(({ name }) => name === 'SKILL.md')) return 'present';
  const near = files.find(({ name }) => name.toLowerCase() === 'skill.md');
  return near ? { wrongCase: near.name } : 'missing';
}

/** Why a name cannot be a plugin or skill directory, or undefined. */
function nameProblem({ name, rawName }: TreeEntry): string | undefined {
  if (rawName) return 'is not UTF-8';
  if (/[\p{Cc}/\\]/u.test(name)) return 'contains control characters, slashes or backslashes';
  if (/^(?:\.{0,2}|\.git)$/i.test(name)) return 'is reserved';
  return Buffer.byteLength(name) > MAX_NAME_BYTES ? `is longer than ${MAX_NAME_BYTES} bytes` : undefined;
}

const printable = (name: string) => name.replaceAll(/[\p{Cc}\p{Cf}]/gu, '?').slice(0, 80);

/** The state of one discovery: a directory listing in, skills and problems out. */
class Walk {
  readonly skills: DiscoveredSkill[] = [];
  readonly problems: DiscoveryProblem[] = [];
  readonly #reader: DiscoverReader;
  readonly #matches: (name: string) => boolean;
  readonly #cache: SkillMdCache | undefined;
  /** A hostile tree can hold one name twice. */
  readonly #seen = new Set<string>();

  constructor(reader: DiscoverReader, options: DiscoverOptions) {
    this.#reader = reader;
    this.#matches = compileFilter(options.include, options.exclude);
    this.#cache = options.cache;
  }

  async plugins(entries: TreeEntry[], signal: AbortSignal): Promise<void> {
    const plugins = entries.filter((entry) => this.#usable(entry, 'plugins', 'plugin'));
    await inBatches(plugins, PLUGIN_BATCH, async (plugin) => {
      const path = `plugins/${plugin.name}`;
      const inside = await this.#entries(plugin.oid, path, signal);
      const skills = inside.find(({ name }) => name === 'skills');
      if (skills && this.#isDirectory(skills, `${path}/skills`, 'directory'))
        await this.#plugin(plugin.name, skills.oid, signal);
    });
  }

  async #plugin(plugin: string, tree: string, signal: AbortSignal): Promise<void> {
    const parent = `plugins/${plugin}/skills`;
    const entries = await this.#entries(tree, parent, signal);
    const wanted = entries.filter(
      (entry) => this.#matches(`${plugin}/${entry.name}`) && this.#usable(entry, parent, 'skill'),
    );
    if (this.skills.length + wanted.length > MAX_SKILLS) {
      throw stalled(
        'TooManySkills',
        `the commit holds more than ${MAX_SKILLS} skills: split the repository, or narrow spec.include`,
      );
    }
    await inBatches(wanted, BATCH, async (entry) => {
      const path = `${parent}/${entry.name}`;
      const verdict = await this.#skillMd(entry.oid, path, signal);
      this.skills.push({ plugin, skill: entry.name, path, tree: entry.oid, hasSkillMd: verdict === 'present' });
      this.#judge(entry.name, path, verdict);
    });
  }

  #judge(name: string, path: string, verdict: SkillMd): void {
    if (verdict === 'present') return;
    if (verdict !== 'missing') {
      this.#problem(path, 'SkillMdWrongCase', `${printable(verdict.wrongCase)} is not read: rename it to SKILL.md`);
    } else if (!/^[._]/.test(name)) {
      this.#problem(
        path,
        'SkillMdMissing',
        'the directory has no SKILL.md: add one, or start the name of the directory with "_" to keep it out',
      );
    }
  }

  async #skillMd(tree: string, path: string, signal: AbortSignal): Promise<SkillMd> {
    const known = this.#cache?.get(tree);
    if (known !== undefined) return known;
    const verdict = skillMdOf(await this.#entries(tree, path, signal));
    this.#cache?.set(tree, verdict);
    return verdict;
  }

  /** A listing that cannot be read ends the discovery: a part of a marketplace must never look like the whole. */
  async #entries(oid: string, path: string, signal: AbortSignal): Promise<TreeEntry[]> {
    const entries = await this.#reader.treeByOid(oid, signal);
    if (!entries)
      throw retry(
        'MirrorCorrupt',
        `directory ${printable(path)} is missing in the local mirror: the operator fetches it anew by itself`,
      );
    return entries;
  }

  #usable(entry: TreeEntry, parent: string, kind: 'plugin' | 'skill'): boolean {
    const path = `${parent}/${printable(entry.name)}`;
    if (!this.#isDirectory(entry, path, `${kind} directory`)) return false;
    const problem = this.#seen.has(path) ? 'stands there twice' : nameProblem(entry);
    this.#seen.add(path);
    if (problem) this.#problem(path, 'NameUnusable', `the name of this ${kind} directory ${problem}: rename it`);
    return problem === undefined;
  }

  #isDirectory({ mode }: TreeEntry, path: string, kind: string): boolean {
    if (mode === '160000') {
      this.#problem(
        path,
        'SubmoduleNotSupported',
        `a submodule stands where a ${kind} is expected: commit the files themselves, or make the submodule's repository a source of its own`,
      );
    } else if (mode === '120000') {
      this.#problem(
        path,
        'SymlinkNotSupported',
        `a symbolic link stands where a ${kind} is expected: commit the directory itself`,
      );
    }
    return mode === '040000';
  }

  #problem(path: string, reason: Reason, message: string): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push({ path, reason, message });
  }

  /** `plugins` of the source's root, or undefined with a problem where it is something else. */
  pluginsTree(entries: TreeEntry[]): string | undefined {
    const plugins = entries.find(({ name }) => name === 'plugins');
    return plugins && this.#isDirectory(plugins, 'plugins', 'directory') ? plugins.oid : undefined;
  }

  async run(path: string, signal: AbortSignal): Promise<Discovery> {
    const root = await this.#reader.tree(path, signal);
    if (!root)
      throw stalled(
        'PathNotFound',
        `the commit has no directory ${JSON.stringify(path)}: correct spec.gitSubdir.path, or push the directory`,
      );
    const plugins = this.pluginsTree(root.entries);
    if (plugins !== undefined) await this.plugins(await this.#entries(plugins, 'plugins', signal), signal);
    const byPath = (a: { path: string }, b: { path: string }) => (a.path < b.path ? -1 : 1);
    return { skills: this.skills.sort(byPath), problems: this.problems.sort(byPath) };
  }
}

async function inBatches<T>(items: T[], size: number, work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += size) await Promise.all(items.slice(at, at + size).map(work));
}

/**
 * Lists the skill directories of a commit: exactly `plugins/<plugin>/skills/<skill>` below the source's root.
 * Reads trees only; a `.claude-plugin/marketplace.json` is neither needed nor read. Names that start with `_` or `.` and have no
 * SKILL.md are listed without a problem.
 * @throws PolicyError `PathNotFound`, `InvalidSpec`, `TooManySkills` (Stalled), or whatever the reader throws; never a partial list.
 */
export async function discover(
  reader: DiscoverReader,
  options: DiscoverOptions,
  signal: AbortSignal,
): Promise<Discovery> {
  return new Walk(reader, options).run(options.path ?? '', signal);
}
