import type { Condition } from '../../api/conditions.ts';
import { DEFAULTS } from '../../api/defaults.ts';
import { ANNOTATIONS, API_VERSION, LABELS } from '../../api/labels.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { labelValue, skillDirectory, skillObjectName } from '../../api/names.ts';
import type { Skill } from '../../api/skill.ts';
import { paced, type Steps } from '../../base/slices.ts';
import type { DiscoveredSkill } from '../../marketplace/discover.ts';
import { hashOf } from '../hash.ts';
import { baseLabels, followedLabels, type OwnedFields, Ownership } from './owned.ts';

/** A generated Skill as the source controller wants it. */
export interface DesiredSkill extends OwnedFields {
  name: string;
  /** `plugins/docs/skills/pdf`, for messages. */
  path: string;
}

/** What one pass does to the Skills of a source. */
export interface Plan {
  apply: DesiredSkill[];
  /** Vanished Skills that may go now. */
  remove: Skill[];
  /** Hash that status.inventory gets when all of it succeeds. */
  inventory: string;
  /** Number of Skills that stand after the pass. */
  live: number;
  /** Set when too many vanish at once: none of those is in `remove`. */
  blocked?: { names: string[]; vanished: number; total: number };
}

const inventoryOf = (entries: Iterable<readonly [string, string]>): string =>
  hashOf([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));

/** Inventory of the live Skills as the cache shows them; equal to status.inventory when nobody changed a thing. */
export function* liveInventory(
  source: MarketplaceSource,
  children: Skill[],
  followed: readonly string[] = [],
): Steps<string> {
  const ownership = new Ownership(source, followed);
  const entries: [string, string][] = [];
  yield* paced(children, (child) => {
    if (!child.metadata.deletionTimestamp) entries.push([child.metadata.name, ownership.fingerprint(child)]);
  });
  return inventoryOf(entries);
}

/** Hash of the parts of the spec that decide what a pass does, and of the pass's own rules; behind the dot which fields it owns. */
export function observedSpecOf(source: MarketplaceSource, followed: readonly string[] = []): string {
  const { interval, timeout, suspend, ...rest } = source.spec;
  const labels = followed.length > 0 ? { labels: followedLabels(source, followed) } : {};
  return `${hashOf({ rest, rules: 1, ...labels })}.${new Ownership(source, followed).id}`;
}

/** The last whole pass owned other fields of the Skills than this one. */
const isReshaped = ({ status }: MarketplaceSource, ownership: Ownership): boolean =>
  status?.observedSpec !== undefined && !status.observedSpec.endsWith(`.${ownership.id}`);

/** The Skill object of one directory; keeps the recorded commit while the tree is the same, so that the object does not move. */
function desire(
  { source, commit }: PlanInput,
  base: Record<string, string>,
  found: DiscoveredSkill,
  now: Skill | undefined,
): DesiredSkill {
  const template = source.spec.skillTemplate;
  const same = now?.spec.revision?.tree === found.tree && now.spec.path === found.path;
  return {
    name: skillObjectName(source.metadata.name, found.plugin, found.skill),
    path: found.path,
    spec: {
      source: { marketplaceRef: { name: source.metadata.name } },
      plugin: found.plugin,
      path: found.path,
      revision: { commit: same ? (now?.spec.revision?.commit ?? commit) : commit, tree: found.tree },
      ...(template?.deletionPolicy ? { deletionPolicy: template.deletionPolicy } : {}),
      ...(template?.versionHistoryLimit === undefined ? {} : { versionHistoryLimit: template.versionHistoryLimit }),
    },
    labels: { ...base, [LABELS.plugin]: labelValue(found.plugin) },
  };
}

interface PlanInput {
  source: MarketplaceSource;
  /** Skills whose controller is this source, from the cache. */
  children: Skill[];
  found: DiscoveredSkill[];
  commit: string;
  /** The annotation allow-prune names this revision. */
  pruneAllowed: boolean;
  /** Labels of the source that its Skills carry too; none without shards. */
  followed?: readonly string[];
}

interface Vanished {
  /** Object name → name of the Skill that takes over; stays until that one serves. */
  handovers: Map<string, string>;
  /** Moved, and no longer needed: go without the guard. */
  settled: Skill[];
  /** Without an heir: the guard counts these. */
  gone: Skill[];
}

/** A vanished Skill whose directory lives on in another plugin hands its name over; the others are gone. */
function sortVanished(vanished: Skill[], wanted: Map<string, DesiredSkill>, live: Map<string, Skill>): Vanished {
  const byDirectory = new Map<string, string>();
  for (const skill of wanted.values()) {
    const directory = skillDirectory(skill.path);
    const other = byDirectory.get(directory);
    if (other === undefined || skill.name < other) byDirectory.set(directory, skill.name);
  }
  const sorted: Vanished = { handovers: new Map(), settled: [], gone: [] };
  for (const skill of vanished) {
    const named = skill.metadata.annotations?.[ANNOTATIONS.handover];
    const heir = named && wanted.has(named) ? named : byDirectory.get(skillDirectory(skill.spec.path));
    if (!heir) sorted.gone.push(skill);
    else if (skill.status?.served && !live.get(heir)?.status?.served) sorted.handovers.set(skill.metadata.name, heir);
    else sorted.settled.push(skill);
  }
  return sorted;
}

/** While a block stands it holds whatever share those that vanished are now: new Skills beside them must not thin them out (I14). */
const pruneBlocked = ({ source, followed }: PlanInput, vanished: number, total: number): boolean => {
  const maxPercent = source.spec.prune?.maxPercent ?? DEFAULTS.pruneMaxPercent;
  return vanished > 3 && (vanished * 100 > maxPercent * total || isBlocked(source, followed));
};

/** The last whole pass left the prune blocked, under the same spec. */
const isBlocked = (source: MarketplaceSource, followed: readonly string[] | undefined): boolean =>
  blockOf(source) !== undefined && source.status?.observedSpec === observedSpecOf(source, followed);

/** The condition PruneBlocked while it stands. */
export const blockOf = ({ status }: MarketplaceSource): Condition | undefined =>
  status?.conditions?.find((condition) => condition.type === 'PruneBlocked' && condition.status === 'True');

/** The Skills that the commit asks for, by object name. A directory without SKILL.md only keeps a Skill that exists. */
function* wantedSkills(input: PlanInput, live: Map<string, Skill>): Steps<Map<string, DesiredSkill>> {
  const wanted = new Map<string, DesiredSkill>();
  const base = baseLabels(input.source, input.followed ?? []);
  yield* paced(input.found, (item) => {
    const name = skillObjectName(input.source.metadata.name, item.plugin, item.skill);
    const now = live.get(name);
    if (item.hasSkillMd || now) wanted.set(name, desire(input, base, item, now));
  });
  return wanted;
}

/** Decides what becomes of the Skills of a source at a commit, in slices (I8). `found` must be a complete listing (I14). */
export function* planSkills(input: PlanInput): Steps<Plan> {
  const { source } = input;
  const live = new Map(
    input.children.filter((child) => !child.metadata.deletionTimestamp).map((child) => [child.metadata.name, child]),
  );
  const ownership = new Ownership(source, input.followed);
  const wanted = yield* wantedSkills(input, live);
  const vanished = [...live.values()].filter((child) => !wanted.has(child.metadata.name));
  const { handovers, settled, gone } = sortVanished(vanished, wanted, live);
  const keep = source.spec.prune?.policy === 'Keep';
  const blocked = !keep && !input.pruneAllowed && pruneBlocked(input, gone.length, live.size);
  const entries = [...wanted.values(), ...handoversOf(handovers, live, ownership)];
  const remaining = new Map<string, string>();
  const apply: DesiredSkill[] = [];
  const reshaped = isReshaped(source, ownership);
  yield* paced(entries, (skill) => {
    const now = live.get(skill.name);
    const fingerprint = ownership.fingerprintOfWanted(skill, now);
    remaining.set(skill.name, fingerprint);
    if (!now || reshaped || ownership.fingerprint(now) !== fingerprint) apply.push(skill);
  });
  const stay = keep ? [...settled, ...gone] : blocked ? gone : [];
  for (const child of stay) remaining.set(child.metadata.name, ownership.fingerprint(child));
  return {
    apply,
    remove: [...settled, ...gone].filter((child) => !stay.includes(child)),
    inventory: inventoryOf(remaining),
    live: remaining.size,
    ...(blocked
      ? {
          blocked: {
            // Sorted, so that the message does not change with the order of the cache.
            names: gone
              .map((child) => child.spec.path)
              .sort()
              .slice(0, 10),
            vanished: gone.length,
            total: live.size,
          },
        }
      : {}),
  };
}

function handoversOf(handovers: Map<string, string>, live: Map<string, Skill>, ownership: Ownership): DesiredSkill[] {
  return [...handovers].flatMap(([name, handover]) => {
    const child = live.get(name);
    return child ? [{ name, path: child.spec.path, ...ownership.of(child), handover }] : [];
  });
}

/** The object that is sent with server-side apply. */
export function skillObject(source: MarketplaceSource, desired: DesiredSkill) {
  return {
    apiVersion: API_VERSION,
    kind: 'Skill',
    metadata: {
      name: desired.name,
      ...(source.metadata.namespace ? { namespace: source.metadata.namespace } : {}),
      labels: desired.labels,
      ...(desired.handover ? { annotations: { [ANNOTATIONS.handover]: desired.handover } } : {}),
      ownerReferences: [
        {
          apiVersion: API_VERSION,
          kind: 'MarketplaceSource',
          name: source.metadata.name,
          uid: source.metadata.uid ?? '',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: desired.spec,
  };
}

/** True when the Skill's controller is that very source. */
export const isControlledBy = (skill: Skill, source: MarketplaceSource): boolean =>
  skill.metadata.ownerReferences?.some((ref) => ref.controller === true && ref.uid === source.metadata.uid) ?? false;
