import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { labelValue, skillDirectory } from '../../api/names.ts';
import { MARKETPLACE_SOURCES, SKILLS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import { stalled } from '../../base/errors.ts';
import type { Scope } from '../../kube/scope.ts';
import type { KubeObject, Resource } from '../../kube/types.ts';
import type { Session } from './session.ts';

const PAGE = 500;
/** More names than these do not help a reader. */
const MAX_NAMES = 8;

/** Both kinds that people work with. */
export type Kind = 'source' | 'skill';
export const RESOURCES: Readonly<Record<Kind, Resource>> = { source: MARKETPLACE_SOURCES, skill: SKILLS };

const KIND_NAMES: Readonly<Record<string, Kind>> = {
  source: 'source',
  sources: 'source',
  mps: 'source',
  marketplacesource: 'source',
  marketplacesources: 'source',
  skill: 'skill',
  skills: 'skill',
  skl: 'skill',
};

/** The kind that a person names, in singular, plural, or as kubectl's short name. */
export const kindOf = (text: string): Kind | undefined => KIND_NAMES[text.toLowerCase()];

/** Every object of a kind, page by page; without a namespace those of the whole cluster. */
export async function listAll<T extends KubeObject>(
  { api }: Pick<Session, 'api'>,
  resource: Resource,
  scope: Scope,
  signal: AbortSignal,
): Promise<T[]> {
  const all: T[] = [];
  let next: string | undefined;
  do {
    const page = await api.listPage<T>(resource, scope, { limit: PAGE, next }, signal);
    all.push(...page.items);
    next = page.next;
  } while (next !== undefined);
  return all;
}

/** Directory name of the plugin and of the skill, `docs/pdf`. */
const shortPath = ({ spec }: Skill): string => `${spec.plugin}/${skillDirectory(spec.path)}`;

/** Skills that a person may mean: by object name, else by `<plugin>/<skill>`, else by bare name. Pure. */
export function matching(skills: readonly Skill[], wanted: string): Skill[] {
  const tests: ((skill: Skill) => boolean)[] = [
    ({ metadata }) => metadata.name === wanted,
    (skill) => shortPath(skill) === wanted,
    ({ spec, status }) => skillDirectory(spec.path) === wanted || status?.skillName === wanted,
  ];
  for (const test of tests) {
    const found = skills.filter(test);
    if (found.length > 0) return found;
  }
  return [];
}

const listed = (names: readonly string[]): string => {
  const more = names.length - MAX_NAMES;
  return `${names.slice(0, MAX_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
};

/** The Skill of that name in the namespace; undefined when there is none. Rejects when the short form fits several. */
export async function findSkill(session: Session, wanted: string, signal: AbortSignal): Promise<Skill | undefined> {
  const { namespace } = session;
  // What cannot be an object's name is a short form, and must not get into a path of the API.
  if (/^[a-z0-9][a-z0-9.-]*$/.test(wanted)) {
    const exact = await session.api.get<Skill>(SKILLS, namespace, wanted, signal);
    if (exact) return exact;
  }
  const found = matching(await listAll<Skill>(session, SKILLS, { namespace }, signal), wanted);
  if (found.length > 1) {
    const names = found.map(({ metadata }) => metadata.name);
    throw stalled(
      'NameConflict',
      `"${wanted}" fits ${found.length} Skills of namespace ${namespace}: ${listed(names)}; give one of these names`,
    );
  }
  return found[0];
}

/** Like `findSkill`; rejects with the names there are when there is none. */
export async function requireSkill(session: Session, wanted: string, signal: AbortSignal): Promise<Skill> {
  const skill = await findSkill(session, wanted, signal);
  if (skill) return skill;
  throw stalled(
    'SourceNotFound',
    `there is no Skill "${wanted}" in namespace ${session.namespace}; skillctl trace ${wanted} looks for the reason, skillctl get skills -A lists all`,
  );
}

/** The MarketplaceSource of that name; rejects with the names there are when there is none. */
async function requireSource(session: Session, name: string, signal: AbortSignal): Promise<MarketplaceSource> {
  const { api, namespace } = session;
  const found = /^[a-z0-9][a-z0-9.-]*$/.test(name)
    ? await api.get<MarketplaceSource>(MARKETPLACE_SOURCES, namespace, name, signal)
    : undefined;
  if (found) return found;
  const all = await listAll<MarketplaceSource>(session, MARKETPLACE_SOURCES, { namespace }, signal);
  const there = all.length > 0 ? `has: ${listed(all.map(({ metadata }) => metadata.name))}` : 'has none';
  throw stalled(
    'SourceNotFound',
    `there is no MarketplaceSource "${name}"; namespace ${namespace} ${there}; choose another with -n`,
  );
}

/** Selector of the Skills of a source. */
export const skillsOf = ({ metadata }: MarketplaceSource): Scope => ({
  ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
  labelSelector: `skills.tfrobot.io/source-uid=${labelValue(metadata.uid ?? '')}`,
});

/** What a person named, with its kind. */
export type Target = { kind: 'source'; object: MarketplaceSource } | { kind: 'skill'; object: Skill };

/**
 * The object behind `[source|skill] NAME`, `source/NAME` or a NAME alone, which is looked for among the sources first.
 * Rejects when there is none.
 */
export async function findTarget(session: Session, words: readonly string[], signal: AbortSignal): Promise<Target> {
  const [first = '', second] = words;
  const slash = first.indexOf('/');
  const prefix = second === undefined && slash > 0 ? kindOf(first.slice(0, slash)) : undefined;
  const kind = second === undefined ? prefix : kindOf(first);
  const name = second ?? (prefix === undefined ? first : first.slice(slash + 1));
  if (second !== undefined && kind === undefined) {
    throw stalled('InvalidSpec', `"${first}" is no kind; type "source" or "skill" before the name`);
  }
  if (kind === 'source') return { kind, object: await requireSource(session, name, signal) };
  if (kind === 'skill') return { kind, object: await requireSkill(session, name, signal) };
  const source = /^[a-z0-9][a-z0-9-]*$/.test(name)
    ? await session.api.get<MarketplaceSource>(MARKETPLACE_SOURCES, session.namespace, name, signal)
    : undefined;
  if (source) return { kind: 'source', object: source };
  const skill = await findSkill(session, name, signal);
  if (skill) return { kind: 'skill', object: skill };
  throw stalled(
    'SourceNotFound',
    `namespace ${session.namespace} has neither a MarketplaceSource nor a Skill "${name}"; skillctl get -A lists all`,
  );
}
