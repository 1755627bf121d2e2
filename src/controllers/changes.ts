import { ANNOTATIONS } from '../api/labels.ts';
import type { MarketplaceSource } from '../api/marketplacesource.ts';
import type { Skill } from '../api/skill.ts';
import type { Change } from '../kube/store.ts';
import { type Enqueue, type KubeObject, keyOf } from '../kube/types.ts';
import { type Names, nameFacts } from './skill/names.ts';

/** True when the change is one that a pass has to look at; a status write is none. */
export function isSignificant<T extends KubeObject>(
  { type, object, old }: Change<T>,
  annotations: readonly string[],
  labels: readonly string[] = [],
): boolean {
  if (type !== 'updated' || !old) return true;
  const [a, b] = [object.metadata, old.metadata];
  return (
    a.generation !== b.generation ||
    a.deletionTimestamp !== b.deletionTimestamp ||
    annotations.some((name) => a.annotations?.[name] !== b.annotations?.[name]) ||
    labels.some((name) => a.labels?.[name] !== b.labels?.[name])
  );
}

/** Which keys a change puts into which queue. */
interface Queues {
  source: Enqueue;
  counts: Enqueue;
  skill: Enqueue;
}

/** Key of the source that controls the Skill. */
function sourceKeyOf(skill: Skill): string | undefined {
  const owner = skill.metadata.ownerReferences?.find((ref) => ref.controller && ref.kind === 'MarketplaceSource');
  return owner && `${skill.metadata.namespace}/${owner.name}`;
}

/** A change of a MarketplaceSource: its own pass, unless only a status moved. `followed`: labels that its Skills carry too. */
export function onSourceChange(
  change: Change<MarketplaceSource>,
  queues: Queues,
  followed: readonly string[] = [],
): void {
  // A pass has ended: the counts can be told for its whole set of Skills.
  if (change.object.status?.inventory !== change.old?.status?.inventory) queues.counts.add(change.key);
  const delivered = change.object.status?.lastWebhookAt !== change.old?.status?.lastWebhookAt;
  if (!delivered && !isSignificant(change, [ANNOTATIONS.requestedAt, ANNOTATIONS.allowPrune], followed)) return;
  queues.source.add(change.key, { priority: !change.initial });
  queues.counts.add(change.key);
}

/** A change of a Skill: its own pass, the counts of its source, and the Skills that wait for its bare name; never a pass of the source. */
export function onSkillChange(change: Change<Skill>, names: Names, queues: Queues): void {
  const { object, old, type, key, initial } = change;
  if (isSignificant(change, [ANNOTATIONS.requestedAt, ANNOTATIONS.rebuild])) {
    // What a person or a new commit touched goes before the mass that a new source brings.
    queues.skill.add(key, { priority: type === 'updated' });
  }
  if (type === 'deleted') names.release(object);
  else names.settle(object);
  const [before, after] = type === 'deleted' ? [object, undefined] : [old, object];
  if (!initial && nameFacts(before) !== nameFacts(after)) {
    // A Skill whose path moved frees one name and wants another.
    const peers = [before, after].flatMap((state) => (state ? names.peers(state) : []));
    for (const key of new Set(peers.map(keyOf))) queues.skill.add(key);
  }
  const owner = sourceKeyOf(object);
  if (owner) queues.counts.add(owner);
}
