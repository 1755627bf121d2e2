import { compareBuild, SemVer, satisfies, validRange } from 'semver';
import { stalled, waiting } from '../base/errors.ts';
import type { RefSpec, Resolved } from './port.ts';

/** The parsed answer of `git ls-remote --symref`. */
export interface RemoteRefs {
  refs: Map<string, string>;
  /** Where HEAD points, when the server says so. */
  head?: string;
}

/** What to ask the remote for and how to choose from its answer. */
export type RefQuery =
  | { kind: 'commit'; commit: string }
  | { kind: 'head' }
  | { kind: 'ref'; ref: string; label: string; field: 'name' | 'tag' | 'branch' }
  /** `prereleases`: the range names one, so it means all of them, as Flux has it. */
  | { kind: 'semver'; range: string; prereleases: boolean };

const OID = /^[0-9a-f]{40}$/;
const OID_SHA256 = /^[0-9a-f]{64}$/;
const MAX_REF = 255;
const shown = (text: string) => JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);

/** True for a full, lower-case SHA-1 object id, the only form of id that is handed to git. */
export const isOid = (text: string): boolean => OID.test(text);

/** Blanks, control characters and the characters that revision syntax and globs use; as git's check-ref-format has it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the rule is about exactly these
const BAD_REF_CHARACTERS = /[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)/;

/** Why git would refuse the name of a ref, or undefined when it is fine. Source: git-check-ref-format, plus: no leading `-`. */
export function refNameProblem(name: string): string | undefined {
  if (name === '') return 'is empty';
  if (name.length > MAX_REF) return `is longer than ${MAX_REF} characters`;
  if (name.startsWith('-')) return 'starts with "-"';
  if (name.startsWith('/') || name.startsWith('.')) return `starts with "${name[0]}"`;
  if (name.endsWith('/') || name.endsWith('.')) return `ends with "${name.at(-1)}"`;
  if (name === '@') return 'is "@" alone';
  if (BAD_REF_CHARACTERS.test(name)) return 'contains characters or sequences that Git forbids in names';
  return undefined;
}

function namedRef(field: 'name' | 'tag' | 'branch', value: string): RefQuery {
  const problem = refNameProblem(value);
  if (problem)
    throw stalled('RefInvalid', `ref.${field} ${shown(value)} ${problem}: write the name as "git ls-remote" lists it`);
  if (field === 'branch') return { kind: 'ref', field, label: value, ref: `refs/heads/${value}` };
  if (field === 'tag') return { kind: 'ref', field, label: value, ref: `refs/tags/${value}` };
  if (value === 'HEAD') return { kind: 'head' };
  if (!value.startsWith('refs/')) {
    throw stalled(
      'RefInvalid',
      `ref.name ${shown(value)} is not a full name: start it with refs/, like refs/heads/main`,
    );
  }
  return { kind: 'ref', field, label: value, ref: value };
}

/**
 * Turns the ref of a spec into a query; the precedence is commit, name, semver, tag, branch, and the remote's HEAD without any.
 * @throws PolicyError `RefInvalid` (Stalled) naming the field and the fix.
 */
export function parseRef(ref: RefSpec): RefQuery {
  if (ref.commit !== undefined) {
    const commit = ref.commit.toLowerCase();
    if (!isOid(commit))
      throw stalled('RefInvalid', `ref.commit ${shown(ref.commit)} is not a full commit id: give all 40 hex digits`);
    return { kind: 'commit', commit };
  }
  if (ref.name !== undefined) return namedRef('name', ref.name);
  if (ref.semver !== undefined) {
    const range = ref.semver.length <= MAX_REF ? validRange(ref.semver) : null;
    if (range === null)
      throw stalled(
        'RefInvalid',
        `ref.semver ${shown(ref.semver)} is not a version range: write it like ">=1.2.0 <2.0.0" or "1.x"`,
      );
    return { kind: 'semver', range: ref.semver, prereleases: /\d-\S/.test(ref.semver) };
  }
  if (ref.tag !== undefined) return namedRef('tag', ref.tag);
  if (ref.branch !== undefined) return namedRef('branch', ref.branch);
  return { kind: 'head' };
}

/** The patterns for `git ls-remote`; HEAD is always asked for, so that an empty repository shows itself in the same request. */
export function patternsOf(query: RefQuery): string[] {
  if (query.kind === 'ref') return ['HEAD', query.ref, `${query.ref}^{}`];
  return query.kind === 'semver' ? ['HEAD', 'refs/tags/*'] : ['HEAD'];
}

/**
 * Reads the output of `git ls-remote --symref`; lines of another shape are skipped.
 * @throws PolicyError `GitOperationFailed` (Stalled) for a repository of SHA-256 ids.
 */
export function parseLsRemote(output: string): RemoteRefs {
  const refs = new Map<string, string>();
  let head: string | undefined;
  for (const line of output.split('\n')) {
    const tab = line.indexOf('\t');
    if (tab < 0) continue;
    const left = line.slice(0, tab);
    const name = line.slice(tab + 1);
    if (left.startsWith('ref: ') && name === 'HEAD') head = left.slice(5);
    else if (isOid(left)) refs.set(name, left);
    else if (OID_SHA256.test(left)) {
      throw stalled(
        'GitOperationFailed',
        'the repository uses SHA-256 object ids, which are not supported: use a SHA-1 repository',
      );
    }
  }
  return head === undefined ? { refs } : { refs, head };
}

const peeled = (remote: RemoteRefs, name: string) => remote.refs.get(`${name}^{}`) ?? remote.refs.get(name);
const result = (label: string, commit: string, fetchRef: string): Resolved => ({
  commit,
  revision: `${label}@sha1:${commit}`,
  fetchRef,
});

function pickHead(remote: RemoteRefs): Resolved {
  const commit = remote.refs.get('HEAD');
  if (commit === undefined) {
    throw waiting(
      'EmptyRepository',
      'the HEAD of the repository points at no commit: push a first commit, or name an existing branch in spec.ref.branch',
    );
  }
  return result(remote.head?.replace(/^refs\/heads\//, '') ?? 'HEAD', commit, remote.head ?? 'HEAD');
}

function pickSemver(remote: RemoteRefs, { range, prereleases }: RefQuery & { kind: 'semver' }): Resolved {
  let best: { version: SemVer; tag: string } | undefined;
  let tags = 0;
  for (const name of remote.refs.keys()) {
    if (!name.startsWith('refs/tags/') || name.endsWith('^{}')) continue;
    tags += 1;
    const tag = name.slice('refs/tags/'.length);
    const version = parseVersion(tag);
    if (!version || !satisfies(version, range, { includePrerelease: prereleases })) continue;
    const order = best ? compareBuild(version, best.version) : 1;
    // v1.0.0 and 1.0.0 are one version: the choice may not depend on the server's order.
    if (order > 0 || (order === 0 && best && tag < best.tag)) best = { version, tag };
  }
  if (!best) {
    throw waiting(
      'RefNotFound',
      `none of the ${tags} tags of the repository is a version in the range "${range}": push such a tag, or widen spec.ref.semver`,
    );
  }
  return result(best.tag, peeled(remote, `refs/tags/${best.tag}`) as string, `refs/tags/${best.tag}`);
}

function parseVersion(tag: string): SemVer | undefined {
  if (tag.length > MAX_REF) return undefined;
  try {
    return new SemVer(tag.replace(/^v/, ''));
  } catch {
    return undefined;
  }
}

/**
 * Chooses the commit that the query names from the remote's refs; annotated tags are peeled.
 * @throws PolicyError `RefNotFound` or `EmptyRepository` (Waiting: only a push heals them).
 */
export function pickRef(query: RefQuery, remote: RemoteRefs): Resolved {
  if (query.kind === 'commit')
    return { commit: query.commit, revision: `sha1:${query.commit}`, fetchRef: query.commit };
  if (query.kind === 'head') return pickHead(remote);
  if (query.kind === 'semver') return pickSemver(remote, query);
  const commit = peeled(remote, query.ref);
  if (commit === undefined) {
    const empty = remote.refs.size === 0 ? ' (the repository has no HEAD either: it may be empty)' : '';
    throw waiting(
      'RefNotFound',
      `the repository has no ${query.ref}${empty}: push it, or correct spec.ref.${query.field}`,
    );
  }
  return result(query.label, commit, query.ref);
}
