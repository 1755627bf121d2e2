import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { MARKETPLACE_SOURCES, SKILLS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import { stalled } from '../../base/errors.ts';
import { EXIT, type ExitCode, type Io } from '../io.ts';
import { painter } from '../terminal.ts';
import { findTarget, type Kind, kindOf, listAll } from './objects.ts';
import { listing, skillTable, sourceTable } from './rows.ts';
import { type ClusterFlags, inCluster, type Session } from './session.ts';

export interface GetFlags extends ClusterFlags {
  allNamespaces?: boolean;
  output: 'human' | 'json' | 'yaml';
}

interface Found {
  sources?: MarketplaceSource[];
  skills?: Skill[];
}

const byName = (a: { metadata: { namespace?: string; name: string } }, b: typeof a): number =>
  (a.metadata.namespace ?? '').localeCompare(b.metadata.namespace ?? '') ||
  a.metadata.name.localeCompare(b.metadata.name);

async function collect(session: Session, kinds: readonly Kind[], flags: GetFlags, signal: AbortSignal): Promise<Found> {
  const scope = flags.allNamespaces ? {} : { namespace: session.namespace };
  const found: Found = {};
  if (kinds.includes('source'))
    found.sources = (await listAll<MarketplaceSource>(session, MARKETPLACE_SOURCES, scope, signal)).sort(byName);
  if (kinds.includes('skill')) found.skills = (await listAll<Skill>(session, SKILLS, scope, signal)).sort(byName);
  return found;
}

/** Kinds of `get`, `get sources`, `get skills`; undefined where the first word is the name of an object. */
function kindsOf(words: readonly string[]): Kind[] | undefined {
  const [first] = words;
  if (first === undefined || first === 'all') return ['source', 'skill'];
  const kind = words.length === 1 ? kindOf(first) : undefined;
  return kind && [kind];
}

async function foundBy(
  session: Session,
  words: readonly string[],
  flags: GetFlags,
  signal: AbortSignal,
): Promise<Found> {
  const kinds = kindsOf(words);
  if (kinds) return collect(session, kinds, flags, signal);
  if (flags.allNamespaces)
    throw stalled('InvalidSpec', 'a name and --all-namespaces exclude each other; choose with -n');
  const { kind, object } = await findTarget(session, words, signal);
  return kind === 'source' ? { sources: [object] } : { skills: [object] };
}

function tablesOf({ sources, skills }: Found, flags: GetFlags, io: Io, now: number): string {
  const withNamespace = flags.allNamespaces === true;
  const options = { paint: painter(io.colors), width: io.columns, now, withNamespace };
  const tables = [
    ...(sources?.length ? [sourceTable(sources, options)] : []),
    ...(skills?.length ? [skillTable(skills, options)] : []),
  ];
  return tables.map((lines) => `${lines.join('\n')}\n`).join('\n');
}

function nothingText({ sources, skills }: Found, { allNamespaces }: GetFlags, namespace: string): string {
  const what = [...(sources ? ['No MarketplaceSource'] : []), ...(skills ? ['no Skill'] : [])].join(' and ');
  const where = allNamespaces ? 'any namespace' : `namespace ${namespace}`;
  return `${what.charAt(0).toUpperCase()}${what.slice(1)} in ${where}.${allNamespaces ? '' : ' -A looks everywhere.'}\n`;
}

/** `skillctl get`: sources and skills as tables, or the objects themselves as JSON or YAML. */
export async function get(
  words: readonly string[],
  flags: GetFlags,
  io: Io,
  clock: Clock,
  signal: AbortSignal,
): Promise<ExitCode> {
  const { found, namespace } = await inCluster(flags, clock, async (session) => ({
    found: await foundBy(session, words, flags, signal),
    namespace: session.namespace,
  }));
  if (flags.output !== 'human') {
    io.out(await listing(found.sources ?? [], found.skills ?? [], flags.output));
    return EXIT.ok;
  }
  const tables = tablesOf(found, flags, io, clock.now());
  if (tables === '') io.err(nothingText(found, flags, namespace));
  else io.out(tables);
  return EXIT.ok;
}
