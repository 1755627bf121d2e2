import type { Condition } from '../../api/conditions.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import type { EventInput } from '../../kube/events.ts';

const find = (list: readonly Condition[] | undefined, type: string) =>
  list?.find((condition) => condition.type === type);

/** Events for what changed between the status before and the conditions of this pass: transitions only. */
export function transitions(
  source: MarketplaceSource,
  after: readonly Condition[],
  changes: { added: number; changed: number; removed: number } | undefined,
): EventInput[] {
  const events: EventInput[] = [];
  const before = source.status?.conditions;
  const [was, is] = [find(before, 'Ready'), find(after, 'Ready')];
  const touched = changes ? changes.added + changes.changed + changes.removed : 0;
  if (is?.status === 'False' && (was?.status !== 'False' || was.reason !== is.reason)) {
    events.push({ type: 'Warning', reason: is.reason, action: 'Reconcile', note: is.message });
  } else if (is?.status === 'True' && touched > 0 && changes) {
    const { added, changed, removed } = changes;
    events.push({
      type: 'Normal',
      reason: 'Succeeded',
      action: 'Apply',
      note: `${is.message} (${added} added, ${changed} changed, ${removed} removed)`,
    });
  } else if (is?.status === 'True' && was?.status === 'False') {
    events.push({ type: 'Normal', reason: 'Succeeded', action: 'Reconcile', note: is.message });
  }
  const blocked = find(after, 'PruneBlocked');
  if (blocked && !find(before, 'PruneBlocked')) {
    events.push({ type: 'Warning', reason: 'PruneBlocked', action: 'Prune', note: blocked.message });
  }
  return events;
}
