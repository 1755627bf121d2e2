import { type Condition, MAX_CONDITION_MESSAGE } from '../api/conditions.ts';
import type { Policy } from '../base/errors.ts';
import type { Reason } from '../base/reasons.ts';
import { redact } from '../base/redact.ts';

/** How a pass ended. `step` names the condition that the failure belongs to. */
export type Outcome<Step extends string> =
  | { kind: 'Done' }
  | { kind: 'Progressing'; message: string }
  | { kind: 'Failed'; policy: Policy; reason: Reason; message: string; step?: Step };

/** The generation, the clock and what the status says now. */
export interface Base {
  /** metadata.generation of the object that the pass read. */
  generation: number;
  /** RFC 3339. */
  now: string;
  /** The status before this pass. */
  status?: { observedGeneration?: number | undefined; conditions?: Condition[] | undefined } | undefined;
  /** spec.suspend. */
  suspended: boolean;
}

/** What a status write carries besides the facts themselves. */
export interface Summary {
  observedGeneration: number;
  conditions: Condition[];
}

/** Cuts text at `max` characters without splitting a character, with an ellipsis. */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = text.slice(0, max - 1);
  return `${/[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
}

/** Gathers conditions in a fixed order; the transition time moves with the status alone. */
export class Conditions {
  readonly #base: Base;
  readonly #list: Condition[] = [];

  constructor(base: Base) {
    this.#base = base;
  }

  /** The condition as it stands before this pass. */
  before(type: string): Condition | undefined {
    return this.#base.status?.conditions?.find((condition) => condition.type === type);
  }

  set(type: string, status: Condition['status'], reason: string, message: string): void {
    const before = this.before(type);
    this.#list.push({
      type,
      status,
      observedGeneration: this.#base.generation,
      lastTransitionTime: before?.status === status ? before.lastTransitionTime : this.#base.now,
      reason,
      message: clip(redact(message), MAX_CONDITION_MESSAGE),
    });
  }

  /** Leaves the condition as it stands, if it stands. */
  keep(type: string): void {
    const before = this.before(type);
    if (before) this.#list.push(before);
  }

  get list(): Condition[] {
    return this.#list;
  }
}

/** A suspended object: Ready and the rest stay, Reconciling goes, the generation counts as seen. */
export function suspendedSummary(base: Base): Summary {
  const conditions = (base.status?.conditions ?? []).filter((condition) => condition.type !== 'Reconciling');
  if (conditions.some((condition) => condition.type === 'Ready'))
    return { observedGeneration: base.generation, conditions };
  const fresh = new Conditions(base);
  fresh.set('Ready', 'False', 'Suspended', 'spec.suspend is true; set it to false to start');
  return { observedGeneration: base.generation, conditions: [...fresh.list, ...conditions] };
}

/** observedGeneration moves after a whole pass only: one that ended, or one that only the author can bring further. */
export function observedGenerationOf(base: Base, outcome: Outcome<string>): number {
  const whole = outcome.kind === 'Done' || (outcome.kind === 'Failed' && outcome.policy === 'Stalled');
  return whole ? base.generation : (base.status?.observedGeneration ?? -1);
}
