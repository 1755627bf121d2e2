import { ANNOTATIONS } from '../api/labels.ts';
import type { MarketplaceSource } from '../api/marketplacesource.ts';
import type { Skill } from '../api/skill.ts';

/** True when the last whole pass was over the spec as it stands. */
export const isObserved = ({ metadata, status }: Skill | MarketplaceSource): boolean =>
  status?.observedGeneration === metadata.generation;

/** A person or a reader asked for a pass that no status has answered yet (annotation requestedAt). */
export function isRequested({ metadata, status }: Skill | MarketplaceSource): boolean {
  const requestedAt = metadata.annotations?.[ANNOTATIONS.requestedAt];
  return requestedAt !== undefined && requestedAt !== status?.lastHandledReconcileAt;
}
