import { LABELS } from '../../api/labels.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { SKILLS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import type { KubeClient } from '../../kube/rest.ts';
import { selectorLabels } from '../../kube/selector.ts';

/** What an instance needs that works on a part of the sources only. */
export interface Shard {
  /** Labels that its selector asks about: the Skills of a source carry them as the source does. */
  followed: readonly string[];
  /** All Skills of a source by a live list, also those that carry the labels of the shard that the source came from. */
  children(source: MarketplaceSource, signal: AbortSignal): Promise<Skill[]>;
}

const PAGE = 250;

/** The shard of a label selector. */
export const shardOf = (api: Pick<KubeClient, 'listPage'>, selector: string): Shard => ({
  followed: selectorLabels(selector) ?? [],
  children: async ({ metadata }, signal) => {
    const scope = { namespace: metadata.namespace ?? '', labelSelector: `${LABELS.sourceUID}=${metadata.uid ?? ''}` };
    const children: Skill[] = [];
    let next: string | undefined;
    do {
      const page = await api.listPage<Skill>(SKILLS, scope, { limit: PAGE, next }, signal);
      children.push(...page.items);
      next = page.next;
    } while (next !== undefined);
    return children.filter((child) => child.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid));
  },
});
