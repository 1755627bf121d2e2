import { ANNOTATIONS, FIELD_MANAGERS } from '../../api/labels.ts';
import { SKILLS } from '../../api/resources.ts';
import type { Skill, SkillStatus } from '../../api/skill.ts';
import { type Clock, rfc3339 } from '../../base/clock.ts';
import type { EventInput } from '../../kube/events.ts';
import type { KubeApi, KubeObject, Store } from '../../kube/types.ts';
import type { Outcome } from '../../lifecycle/condition.ts';
import { fitStatus, MAX_FINDINGS } from '../../lifecycle/findings.ts';
import { type SkillStep, summarizeSkill } from '../../lifecycle/skill-summary.ts';
import { type Expecting, sameFields, writeStatus } from '../status-writer.ts';
import { skillEvents } from './events.ts';
import { isOfBuild } from './ignored.ts';
import type { Pass } from './pass.ts';
import { nextStatus, SKILL_STATUS_FIELDS } from './status.ts';

interface FinishDeps {
  api: KubeApi;
  skills: Store<Skill> & Expecting;
  events: { record(regarding: KubeObject, input: EventInput): void };
  clock: Clock;
}

/** Ends a pass: conditions, one status write where something changed, events on transitions. */
export class Finisher {
  readonly #deps: FinishDeps;

  constructor(deps: FinishDeps) {
    this.#deps = deps;
  }

  async finish(pass: Pass, outcome: Outcome<SkillStep>, signal: AbortSignal): Promise<void> {
    const { skill, slots, evaluated, promoted, actions, rebuild, ignored } = pass;
    const summary = summarizeSkill({
      generation: skill.metadata.generation ?? 0,
      now: rfc3339(this.#deps.clock.now()),
      status: skill.status,
      suspended: skill.spec.suspend ?? false,
      slots,
      outcome,
      ownGit: skill.spec.source.git !== undefined,
      passed: pass.passed,
      invalid: pass.invalid,
      packageLost: pass.packageLost,
      templateUnknown: pass.templateUnknown,
    });
    const requestedAt = skill.metadata.annotations?.[ANNOTATIONS.requestedAt];
    const next = nextStatus(
      { skill, slots, evaluated, promoted, summary, requestedAt, rebuild, ignored },
      (current, wanted) => sameFields(current, wanted, SKILL_STATUS_FIELDS),
    );
    if (!next.changed) return;
    const status = next.needsLists ? await this.#withLists(skill, next.status, signal) : next.status;
    const writer = { api: this.#deps.api, resource: SKILLS, fieldManager: FIELD_MANAGERS.skill };
    await writeStatus(writer, this.#deps.skills, skill, status, signal);
    for (const event of skillEvents(skill, summary.conditions, actions)) this.#deps.events.record(skill, event);
  }

  /** The cache dropped the lists; a write that did not make them anew takes them from the live object. */
  async #withLists(skill: Skill, status: SkillStatus, signal: AbortSignal): Promise<SkillStatus> {
    const { namespace = '', name } = skill.metadata;
    const live = await this.#deps.api.get<Skill>(SKILLS, namespace, name, signal);
    const { violations, warnings = [] } = live?.status ?? {};
    // Those of the build are made anew by every pass.
    const all = [...(status.warnings ?? []), ...warnings.filter((one) => !isOfBuild(one))].slice(0, MAX_FINDINGS);
    return fitStatus({
      ...status,
      ...(violations ? { violations } : {}),
      ...(all.length > 0 ? { warnings: all } : {}),
    });
  }
}
