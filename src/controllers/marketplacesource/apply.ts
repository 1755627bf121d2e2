import { FIELD_MANAGERS } from '../../api/labels.ts';
import type { MarketplaceSource, Problem } from '../../api/marketplacesource.ts';
import { skillDirectory } from '../../api/names.ts';
import { SKILLS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import { type Applied, applyCreate, applyUpdate, preconditionOf, type Writer } from '../../kube/apply.ts';
import { hasCode } from '../../kube/errors.ts';
import { type KubeApi, keyOf, type Store } from '../../kube/types.ts';
import type { Expecting } from '../status-writer.ts';
import { type DesiredSkill, isControlledBy, skillObject } from './plan.ts';

const TRIES = 3;

/** Writes the Skills of a source; the only code that creates, changes or deletes a generated Skill. */
export class SkillApplier {
  readonly #api: KubeApi;
  readonly #skills: Store<Skill> & Expecting;
  readonly #writer: Writer;

  constructor(api: KubeApi, skills: Store<Skill> & Expecting) {
    this.#api = api;
    this.#skills = skills;
    this.#writer = { api, resource: SKILLS, fieldManager: FIELD_MANAGERS.source };
  }

  /** Applies one Skill; a problem when the name belongs to somebody else, whose object is never touched. */
  async apply(source: MarketplaceSource, desired: DesiredSkill, signal: AbortSignal): Promise<Problem | undefined> {
    const namespace = source.metadata.namespace ?? '';
    let known = this.#skills.get(`${namespace}/${desired.name}`);
    for (let attempt = 1; ; attempt++) {
      if (known && !isControlledBy(known, source)) return clash(desired, known);
      const written = await this.#write(source, desired, known, attempt < TRIES, signal);
      if (written) {
        this.#skills.expect(keyOf(written), written.metadata.resourceVersion, keyOf(source));
        // An apply without uid can land on an object of somebody else that shares no field.
        return isControlledBy(written, source) ? undefined : clash(desired, written);
      }
      known = await this.#api.get<Skill>(SKILLS, namespace, desired.name, signal);
    }
  }

  /** Applies Skills one after the other; the problems of those whose name belongs to somebody else. */
  async applyInTurn(source: MarketplaceSource, group: DesiredSkill[], signal: AbortSignal): Promise<Problem[]> {
    const problems: Problem[] = [];
    for (const desired of group) {
      const problem = await this.apply(source, desired, signal);
      if (problem) problems.push(problem);
    }
    return problems;
  }

  /** Deletes that very object. */
  async remove(skill: Skill, signal: AbortSignal): Promise<void> {
    const { namespace = '', name, uid } = skill.metadata;
    await this.#api.delete(SKILLS, namespace, name, uid ? { uid } : {}, signal);
  }

  /** undefined: refused with 409, which is an error of the last try. */
  async #write(
    source: MarketplaceSource,
    desired: DesiredSkill,
    known: Skill | undefined,
    mayRetry: boolean,
    signal: AbortSignal,
  ): Promise<Skill | undefined> {
    const object: Applied = skillObject(source, desired);
    try {
      return known
        ? await applyUpdate<Skill>(this.#writer, preconditionOf(known), object, signal)
        : await applyCreate<Skill>(this.#writer, object, signal);
    } catch (error) {
      if (mayRetry && hasCode(error, 409)) return undefined;
      throw error;
    }
  }
}

/**
 * Groups that may be applied side by side: Skills of one bare name stand in one group, the smaller object name first. Created in that
 * order they get the same holder of the name in every installation.
 */
export const inNameOrder = (skills: readonly DesiredSkill[]): DesiredSkill[][] =>
  [...Map.groupBy(skills, ({ path }) => skillDirectory(path)).values()].map((group) =>
    group.sort((a, b) => (a.name < b.name ? -1 : 1)),
  );

function clash(desired: DesiredSkill, owner: Skill): Problem {
  const controller = owner.metadata.ownerReferences?.find((ref) => ref.controller);
  const whose = controller ? `belongs to ${controller.kind} ${controller.name}` : 'was applied by somebody else';
  return {
    path: desired.path,
    reason: 'NameClash',
    message: `Skill ${desired.name} ${whose} and is left alone; delete or rename that object, then the next pass makes this one`,
  };
}
