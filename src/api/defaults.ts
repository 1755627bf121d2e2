import type { MarketplaceSourceSpec } from './marketplacesource.ts';
import type { SkillSpec } from './skill.ts';

const UNIT_MS: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
const MIN_INTERVAL_MS = 10_000;
/** Bound of both durations, so that a timer never overflows (the schema says the same). */
const MAX_INTERVAL_MS = 168 * 3_600_000;
const MAX_TIMEOUT_MS = 3_600_000;

/** Values that count where the spec is silent. There are no defaults in the schema: GitOps tools would see drift. */
export const DEFAULTS = {
  intervalMs: 300_000,
  timeoutMs: 60_000,
  prunePolicy: 'Delete',
  pruneMaxPercent: 50,
  deletionPolicy: 'Delete',
  versionHistoryLimit: 1,
  githubBaseURL: 'https://github.com',
} as const;

/** Milliseconds of a Go duration such as `1h30m`, `90s` or `1.5h`; undefined when the text is none. */
export function parseDuration(text: string): number | undefined {
  if (!/^([0-9]{1,7}(\.[0-9]{1,3})?(ms|s|m|h))+$/.test(text)) return undefined;
  let ms = 0;
  for (const [, amount, unit] of text.matchAll(/([0-9.]+)(ms|s|m|h)/g))
    ms += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0);
  return Math.round(ms);
}

function duration(text: string | undefined, fallback: number, min: number, max: number): number {
  const ms = text === undefined ? undefined : parseDuration(text);
  return ms === undefined ? fallback : Math.min(Math.max(ms, min), max);
}

/** What a MarketplaceSource spec means; all durations in milliseconds. */
export interface EffectiveSource {
  intervalMs: number;
  timeoutMs: number;
  suspend: boolean;
  prune: { policy: 'Delete' | 'Keep'; maxPercent: number };
  include: string[];
  exclude: string[];
}

/** Fills in what the spec leaves open; values out of bounds (an object stored by another release) are clamped. */
export function effectiveSource(spec: MarketplaceSourceSpec): EffectiveSource {
  return {
    intervalMs: duration(spec.interval, DEFAULTS.intervalMs, MIN_INTERVAL_MS, MAX_INTERVAL_MS),
    timeoutMs: duration(spec.timeout, DEFAULTS.timeoutMs, 1000, MAX_TIMEOUT_MS),
    suspend: spec.suspend ?? false,
    prune: {
      policy: spec.prune?.policy ?? DEFAULTS.prunePolicy,
      maxPercent: spec.prune?.maxPercent ?? DEFAULTS.pruneMaxPercent,
    },
    include: spec.include ?? [],
    exclude: spec.exclude ?? [],
  };
}

/** What a Skill spec means. `intervalMs` and `timeoutMs` concern a Skill with its own Git source. */
export interface EffectiveSkill {
  intervalMs: number;
  timeoutMs: number;
  suspend: boolean;
  deletionPolicy: 'Delete' | 'Orphan';
  versionHistoryLimit: number;
}

/** Fills in what the spec leaves open; values out of bounds are clamped. */
export function effectiveSkill(spec: SkillSpec): EffectiveSkill {
  return {
    intervalMs: duration(spec.source.git?.interval, DEFAULTS.intervalMs, MIN_INTERVAL_MS, MAX_INTERVAL_MS),
    timeoutMs: duration(spec.source.git?.timeout, DEFAULTS.timeoutMs, 1000, MAX_TIMEOUT_MS),
    suspend: spec.suspend ?? false,
    deletionPolicy: spec.deletionPolicy ?? DEFAULTS.deletionPolicy,
    versionHistoryLimit: spec.versionHistoryLimit ?? DEFAULTS.versionHistoryLimit,
  };
}

/** Repository and directory of a source of a Git kind; undefined for the other kinds. `root` is '' for the whole repository. */
export function gitLocation(spec: MarketplaceSourceSpec): { url: string; root: string } | undefined {
  if (spec.type === 'github' && spec.github) {
    const base = (spec.github.baseURL ?? DEFAULTS.githubBaseURL).replace(/\/+$/, '');
    return { url: `${base}/${spec.github.repository.replace(/\.git$/, '')}.git`, root: '' };
  }
  if (spec.type === 'git' && spec.git) return { url: spec.git.url, root: '' };
  if (spec.type === 'git-subdir' && spec.gitSubdir) return { url: spec.gitSubdir.url, root: spec.gitSubdir.path };
  return undefined;
}

/** The first field of the spec whose hands this release does not have yet, as a path below spec; undefined when all are there. */
export function notSupportedYet(spec: MarketplaceSourceSpec): string | undefined {
  if (spec.type === 'archive' || spec.archive) return 'spec.archive';
  return spec.type === 'inline' || spec.inline ? 'spec.inline' : undefined;
}
