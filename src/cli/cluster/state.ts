import type { Condition } from '../../api/conditions.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import type { Skill } from '../../api/skill.ts';
import type { Style } from '../terminal.ts';

/** One word for how an object is, and why. */
export interface State {
  word:
    | 'Ready'
    | 'Invalid'
    | 'Failed'
    | 'Waiting'
    | 'Building'
    | 'Registering'
    | 'Progressing'
    | 'Pending'
    | 'Suspended'
    | 'Deleting';
  /** A reason of docs/errors.md; '' where the operator has not looked yet. */
  reason: string;
  message: string;
}

/** Colours of the words. */
export const STYLES: Readonly<Record<State['word'], Style>> = {
  Ready: 'green',
  Invalid: 'red',
  Failed: 'red',
  Waiting: 'yellow',
  Building: 'cyan',
  Registering: 'cyan',
  Progressing: 'cyan',
  Pending: 'yellow',
  Suspended: 'dim',
  Deleting: 'yellow',
};

/** A condition of an object by type. */
export const conditionOf = (object: MarketplaceSource | Skill, type: string): Condition | undefined =>
  object.status?.conditions?.find((one) => one.type === type);

/** True where some condition of that type says so. */
export const isTrue = (object: MarketplaceSource | Skill, type: string): boolean =>
  conditionOf(object, type)?.status === 'True';

const PENDING = 'the operator has not looked at it yet';
const STALE = 'the operator has not looked at the newest spec yet';

function phaseOf(object: MarketplaceSource | Skill): State['word'] {
  const candidate = object.status && 'candidate' in object.status ? object.status.candidate : undefined;
  return candidate?.phase === 'Building' || candidate?.phase === 'Registering' ? candidate.phase : 'Progressing';
}

/** How an object is. Pure; follows the conditions, so it agrees with kubectl, Argo CD and Flux. */
export function stateOf(object: MarketplaceSource | Skill): State {
  const ready = conditionOf(object, 'Ready');
  const { reason = '', message = '' } = ready ?? {};
  if (object.metadata.deletionTimestamp !== undefined) {
    return {
      word: 'Deleting',
      reason: 'Deleting',
      message: `deleted at ${object.metadata.deletionTimestamp}, not gone yet`,
    };
  }
  if (object.spec.suspend)
    return { word: 'Suspended', reason: 'Suspended', message: message || 'spec.suspend is true' };
  if (!ready) return { word: 'Pending', reason, message: PENDING };
  // Retries do not move observedGeneration, but their condition carries the generation that it was computed for.
  const seen = Math.max(object.status?.observedGeneration ?? -1, ready.observedGeneration ?? -1);
  if (seen < (object.metadata.generation ?? 0)) return { word: 'Pending', reason, message: STALE };
  if (ready.status === 'True') return { word: 'Ready', reason, message };
  if (ready.status === 'Unknown') return { word: phaseOf(object), reason, message };
  if (reason === 'Invalid') return { word: 'Invalid', reason, message };
  return { word: isTrue(object, 'Stalled') ? 'Failed' : 'Waiting', reason, message };
}
