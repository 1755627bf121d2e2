import { redact } from '../base/redact.ts';
import type { Condition } from './types.ts';

/** Longest message of a condition, in characters; metav1 allows 32 KiB, a reader and a status of bounded size do not. */
const MAX_MESSAGE = 1024;

/** What a caller knows about a condition; the time is worked out here. */
export type ConditionInput = Omit<Condition, 'lastTransitionTime'>;

/**
 * The list with that condition set: in place where the type is there, else at the end.
 * `lastTransitionTime` (`now`, RFC 3339) moves only when the status does. The message is redacted and cut to 1024 characters.
 * The same list is returned when nothing changes.
 */
export function setCondition(list: readonly Condition[], input: ConditionInput, now: string): readonly Condition[] {
  const at = list.findIndex((c) => c.type === input.type);
  const old = list[at];
  const lastTransitionTime = old?.status === input.status ? old.lastTransitionTime : now;
  const condition: Condition = { ...input, message: cut(redact(input.message)), lastTransitionTime };
  if (!old) return [...list, condition];
  return sameCondition(old, condition) ? list : list.with(at, condition);
}

/** The list without that type; the same list when it has none. */
export function removeCondition(list: readonly Condition[], type: string): readonly Condition[] {
  return list.some((c) => c.type === type) ? list.filter((c) => c.type !== type) : list;
}

/** The condition of that type. */
export const getCondition = (list: readonly Condition[] | undefined, type: string): Condition | undefined =>
  list?.find((c) => c.type === type);

/** True when both lists say the same, in whatever order, times of transition included. */
export function sameConditions(a: readonly Condition[], b: readonly Condition[]): boolean {
  if (a.length !== b.length) return false;
  return a.every((condition) => {
    const other = getCondition(b, condition.type);
    return other !== undefined && sameCondition(condition, other);
  });
}

function sameCondition(a: Condition, b: Condition): boolean {
  return (
    a.status === b.status &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.observedGeneration === b.observedGeneration &&
    a.lastTransitionTime === b.lastTransitionTime
  );
}

/** Cuts at a code point, with a mark that something is missing. */
function cut(message: string): string {
  if (message.length <= MAX_MESSAGE) return message;
  return `${message.slice(0, MAX_MESSAGE - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}
