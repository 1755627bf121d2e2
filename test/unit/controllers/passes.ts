import type { MarketplaceSource } from '../../../src/api/marketplacesource.ts';
import type { Skill } from '../../../src/api/skill.ts';
import { atOnce } from '../../../src/base/slices.ts';
import { observedSpecOf, type Plan, planSkills } from '../../../src/controllers/marketplacesource/plan.ts';
import type { DiscoveredSkill } from '../../../src/marketplace/discover.ts';
import { applied, directory, served, source } from './objects.ts';

/** Two commits. */
export const C1 = '1'.repeat(40);
export const C2 = '2'.repeat(40);

interface PassInput {
  owner?: MarketplaceSource;
  children?: Skill[];
  found: DiscoveredSkill[];
  commit?: string;
  pruneAllowed?: boolean;
  followed?: string[];
}

/** planSkills with everything but the listing defaulted. */
export const plan = ({
  owner = source(),
  children = [],
  found,
  commit = C1,
  pruneAllowed = false,
  followed = [],
}: PassInput): Plan => atOnce(planSkills({ source: owner, children, found, commit, pruneAllowed, followed }));

/** The children after the plan was carried out. */
export function carriedOut(owner: MarketplaceSource, children: Skill[], { apply, remove }: Plan): Skill[] {
  const left = new Map(children.map((child) => [child.metadata.name, child]));
  for (const { metadata } of remove) left.delete(metadata.name);
  for (const desired of apply) left.set(desired.name, applied(owner, desired, left.get(desired.name)));
  return [...left.values()];
}

/** The source as the status write at the end of a pass leaves it. */
export function written(owner: MarketplaceSource, { blocked }: Plan, followed: string[] = []): MarketplaceSource {
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const condition = {
    type: 'PruneBlocked',
    status: 'True' as const,
    reason: 'PruneBlocked',
    message: 'blocked',
    lastTransitionTime,
  };
  return {
    ...owner,
    status: {
      ...owner.status,
      observedGeneration: 1,
      observedSpec: observedSpecOf(owner, followed),
      conditions: blocked ? [condition] : [],
    },
  };
}

/** Children as a first pass over these directories leaves them. */
export function standing(found: DiscoveredSkill[], owner = source()): Skill[] {
  return carriedOut(owner, [], plan({ owner, found }));
}

/** Names of what is applied. */
export const names = (list: { name: string }[]) => list.map(({ name }) => name);
/** Names of what is removed. */
export const removed = ({ remove }: Plan) => remove.map(({ metadata }) => metadata.name);
/** The same Skill, serving a version. */
export const serving = (child: Skill): Skill => ({ ...child, status: { ...child.status, served: served() } });
/** `count` directories of a plugin, each with a tree of its own. */
export const of = (count: number, plugin = 'docs') =>
  Array.from({ length: count }, (_, i) => directory(`${plugin}/skill-${i}`, `tree-${i}`));
