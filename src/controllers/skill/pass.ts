import { effectiveSkill } from '../../api/defaults.ts';
import { FINALIZER } from '../../api/labels.ts';
import type { Skill, StatusFinding } from '../../api/skill.ts';
import { type Clock, rfc3339 } from '../../base/clock.ts';
import type { PolicyError } from '../../base/errors.ts';
import type { Outcome } from '../../lifecycle/condition.ts';
import type { SkillStep } from '../../lifecycle/skill-summary.ts';
import { type Action, type Context, type Event, type Slots, slotsOf } from '../../lifecycle/slots.ts';
import { transition } from '../../lifecycle/transition.ts';
import type { Frontmatter } from '../../protocol/types.ts';
import type { Hands } from '../byo/port.ts';
import type { Names } from './names.ts';
import type { Evaluated } from './status.ts';

/** What one pass over a Skill learnt so far. */
export interface Pass {
  skill: Skill;
  slots: Slots;
  actions: Action[];
  /** The step that a failure now belongs to. */
  step?: SkillStep | undefined;
  passed: Partial<Record<SkillStep, string>>;
  /** How long ago the remote of its own source was asked, milliseconds. */
  lookedAgoMs?: number | undefined;
  evaluated?: Evaluated;
  invalid?: string | undefined;
  /** Frontmatter of a version that is served from this pass on and was evaluated in an earlier one. */
  promoted?: Frontmatter | undefined;
  /** The stored bytes are looked at, not only trusted. */
  verifying?: boolean;
  /** The served package is gone for good: the message. */
  packageLost?: string | undefined;
  /** The engine does not know the platform template: the message. */
  templateUnknown?: string | undefined;
  /** Warnings of a build that ended in this pass. */
  ignored?: StatusFinding[] | undefined;
  /** Value of the annotation rebuild that the candidate answers. */
  rebuild?: string | undefined;
}

/** A pass that knows nothing yet. */
export const newPass = (skill: Skill): Pass => ({
  skill,
  slots: slotsOf(skill),
  actions: [],
  passed: {},
  rebuild: skill.status?.lastHandledRebuild,
});

/**
 * A pass that failed, with the slots as they were. What led to other slots goes with them: content that the status called observed, or a
 * rebuild that it called answered, would never get into the slots again.
 */
export function withoutProgress({ evaluated: _evaluated, ignored: _ignored, ...pass }: Pass): Pass {
  return { ...pass, slots: slotsOf(pass.skill), actions: [], rebuild: pass.skill.status?.lastHandledRebuild };
}

/** Message of a condition that stands with that reason. */
export const standing = (skill: Skill, type: string, reason: string): string | undefined =>
  skill.status?.conditions?.find((condition) => condition.type === type && condition.reason === reason)?.message;

/** How a failed pass ended, for the summary. */
export const failed = ({ policy, reason, message }: PolicyError, { step }: Pass): Outcome<SkillStep> => ({
  kind: 'Failed',
  policy,
  reason,
  message,
  ...(step === undefined ? {} : { step }),
});

/** Feeds events into the slots of a pass, in the context of the moment. */
export class Slotting {
  readonly #names: Names;
  readonly #hands: Hands;
  readonly #clock: Clock;

  constructor(names: Names, hands: Hands, clock: Clock) {
    this.#names = names;
    this.#hands = hands;
    this.#clock = clock;
  }

  apply(pass: Pass, event: Event): void {
    const engine = event.type === 'NewDigest' ? event.version.engine : pass.slots.candidate?.engine;
    const step = transition(pass.slots, event, this.context(pass.skill, engine));
    pass.slots = step.slots;
    pass.actions.push(...step.actions);
  }

  /** `engine`: the one that the candidate needs. */
  context(skill: Skill, engine: string | undefined): Context {
    const { versionHistoryLimit, deletionPolicy, suspend } = effectiveSkill(skill.spec);
    const verdict = this.#names.verdict(skill);
    const holder = verdict.kind === 'taken' ? verdict.holder : verdict.kind === 'wait' ? verdict.behind : undefined;
    return {
      now: rfc3339(this.#clock.now()),
      historyLimit: versionHistoryLimit,
      deletionPolicy,
      nameHolder: holder,
      buildsConfigured: this.#hands.configuredFor(engine),
      hasFinalizer: skill.metadata.finalizers?.includes(FINALIZER) ?? false,
      deleting: skill.metadata.deletionTimestamp !== undefined,
      suspended: suspend,
      ledgerDigests: this.#hands.ledgerDigests(skill),
    };
  }
}
