import type { Skill } from '../../api/skill.ts';
import { type Clock, rfc3339 } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { ENGINE_LABEL } from '../../engine/errors.ts';
import type { SandboxEngine } from '../../engine/port.ts';
import { type Key, keyOf, type Store } from '../../kube/types.ts';
import { tierOf } from '../../lifecycle/slots.ts';
import type { Engine } from '../../protocol/types.ts';
import { isSuspicious } from '../../store/sweep.ts';
import type { Health } from '../health.ts';
import type { OperatorState } from './state.ts';

/** What healing templates works with. */
export interface TemplateHealDeps {
  skills: Store<Skill>;
  engines: Readonly<Partial<Record<Engine, Pick<SandboxEngine, 'list' | 'exists'>>>>;
  health: Health;
  state: OperatorState;
  wake: (key: Key) => void;
  clock: Clock;
  logger: Logger;
  metrics: Pick<Metrics, 'upkeep'>;
}

/** The served templates that the operator registered at an engine, by id. */
export function servedTemplates(skills: readonly Skill[], engine: string): Map<string, Key> {
  const served = skills.flatMap((skill) => {
    const version = skill.status?.served;
    if (!version?.templateID || version.engine !== engine || tierOf(version.runtime) !== 2) return [];
    return skill.metadata.deletionTimestamp ? [] : [[version.templateID, keyOf(skill)] as const];
  });
  return new Map(served);
}

/**
 * Compares one list per engine with the templates that Skills serve; lost ones are registered again from their image. So many lost at
 * once that it looks like another account or an engine set up anew: EngineSuspect, and nothing is registered until a person allows it.
 */
export class TemplateHeal {
  readonly #deps: TemplateHealDeps;

  constructor(deps: TemplateHealDeps) {
    this.#deps = deps;
  }

  /** One comparison per engine; true: an engine is suspect. An engine that does not answer is left for the next time. */
  async run(signal: AbortSignal): Promise<boolean> {
    let blocked = false;
    for (const name of Object.keys(this.#deps.engines) as Engine[]) {
      try {
        blocked = (await this.#compare(name, signal)) || blocked;
      } catch (error) {
        if (signal.aborted) throw error;
        this.#deps.logger.warn({ engine: name }, `templates could not be compared: ${messageOf(error)}`);
      }
    }
    return blocked;
  }

  async #compare(name: Engine, signal: AbortSignal): Promise<boolean> {
    const { skills, engines, state, clock } = this.#deps;
    const engine = engines[name];
    const expected = servedTemplates(skills.list(), name);
    if (!engine || expected.size === 0) return false;
    const listed = new Set((await engine.list(signal)).map(({ templateId }) => templateId));
    const missing = [...expected].filter(([id]) => !listed.has(id));
    const kind = `EngineSuspect.${name}` as const;
    if (isSuspicious(missing.length, expected.size) && (await state.allowed(kind, signal)) === undefined) {
      const message = `${ENGINE_LABEL[name]} lists ${missing.length} of ${expected.size} registered templates no more, such as ${missing[0]?.[0]}; check its URL and its key, or restore the engine`;
      await state.raise(kind, message, rfc3339(clock.now()), signal);
      return true;
    }
    await state.clear(kind, signal);
    for (const [id, key] of missing) await this.#confirm(engine, id, key, signal);
    return false;
  }

  /** A list may lag behind; only what the engine does not know by its id is lost. */
  async #confirm(engine: Pick<SandboxEngine, 'exists'>, id: string, key: Key, signal: AbortSignal): Promise<void> {
    const { skills, health, wake, metrics, logger } = this.#deps;
    if (await engine.exists(id, signal)) return;
    metrics.upkeep('template_lost', 1);
    logger.info({ key, template: id }, 'the engine lost the template; it is registered again');
    if (skills.get(key)?.spec.suspend) return;
    health.templateLost(key, id);
    wake(key);
  }
}
