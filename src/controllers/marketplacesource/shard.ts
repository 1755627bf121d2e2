import { LABELS } from '../../api/labels.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { SKILLS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import { type Lister, pagesOf } from '../../kube/pages.ts';
import { selectorLabels } from '../../kube/selector.ts';

/** What an instance needs that works on a part of the sources only. */
export interface Shard {
  /** Labels that its selector asks about: the Skills of a source carry them as the source does. */
  followed: readonly string[];
  /** All Skills of a source by a live list, also those that carry the labels of the shard that the source came from. */
  children(source: MarketplaceSource, signal: AbortSignal): Promise<Skill[]>;
}

/** The shard of a label selector. */
export const shardOf = (api: Lister, selector: string): Shard => ({
  followed: selectorLabels(selector) ?? [],
  children: async ({ metadata }, signal) => {
    const scope = { namespace: metadata.namespace ?? '', labelSelector: `${LABELS.sourceUID}=${metadata.uid ?? ''}` };
    const children: Skill[] = [];
    for await (const skills of pagesOf<Skill>(api, SKILLS, scope, signal)) children.push(...skills);
    return children.filter((child) => child.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid));
  },
});
