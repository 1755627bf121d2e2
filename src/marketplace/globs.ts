import picomatch from 'picomatch';
import { stalled } from '../base/errors.ts';

const MAX_PATTERNS = 100;
const MAX_LENGTH = 256;
/** Matching time grows with this power of a name's length. */
const MAX_STARS_PER_SEGMENT = 3;
/** The glob library passes regular expression syntax on; with these characters alone a pattern cannot carry any. */
const ALLOWED = /^[\p{L}\p{N}\p{M}._*?{}[\],!/@ -]+$/u;

const OPTIONS = {
  dot: true,
  nonegate: true,
  noextglob: true,
  strictSlashes: true,
  posix: true,
  windows: false,
} as const;

function check(field: string, pattern: string): void {
  const fail = (why: string) =>
    stalled('InvalidSpec', `${field} pattern ${JSON.stringify(pattern.slice(0, 80))} ${why}`);
  if (pattern.length > MAX_LENGTH) throw fail(`is longer than ${MAX_LENGTH} characters: shorten it`);
  if (!ALLOWED.test(pattern))
    throw fail('has characters that globs do not take: use *, **, ?, [abc] and {a,b} over <plugin>/<skill>');
  for (const segment of pattern.split('/')) {
    const stars = segment.match(/\*+/g)?.length ?? 0;
    if (stars > MAX_STARS_PER_SEGMENT)
      throw fail(`has more than ${MAX_STARS_PER_SEGMENT} stars between two slashes: simplify it`);
  }
}

function compile(field: string, patterns: string[] | undefined): ((name: string) => boolean) | undefined {
  if (!patterns || patterns.length === 0) return undefined;
  if (patterns.length > MAX_PATTERNS)
    throw stalled('InvalidSpec', `${field} has more than ${MAX_PATTERNS} patterns: join some of them`);
  for (const pattern of patterns) check(field, pattern);
  const matchers = patterns.map((pattern) => picomatch(pattern, OPTIONS));
  return (name) => matchers.some((matches) => matches(name));
}

/**
 * The filter of a source over `<plugin>/<skill>`: in one of `include` (all without any), and in none of `exclude`.
 * @throws PolicyError `InvalidSpec` (Stalled) naming field and pattern.
 */
export function compileFilter(include: string[] | undefined, exclude: string[] | undefined): (name: string) => boolean {
  const included = compile('include', include);
  const excluded = compile('exclude', exclude);
  return (name) => (included?.(name) ?? true) && !excluded?.(name);
}
