import type { Skill } from '../../api/skill.ts';
import { messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { SandboxEngine } from '../../engine/port.ts';
import { type Key, keyOf, type Store } from '../../kube/types.ts';
import type { Engine } from '../../protocol/types.ts';
import type { Health } from '../health.ts';
import { saysUnknown } from '../skill/template.ts';
import { templateClaim, versionsOf } from './references.ts';

/** What the check of the platform templates works with. */
export interface PlatformCheckDeps {
  skills: Store<Skill>;
  engines: Readonly<Partial<Record<Engine, Pick<SandboxEngine, 'resolve'>>>>;
  /** runtime → id or alias. */
  tier1: Readonly<Partial<Record<string, string>>>;
  health: Health;
  wake: (key: Key) => void;
  logger: Logger;
}

/** Asks the engines whether they know the templates of the Tier 1 map, and wakes the Skills of those whose answer changed. */
export class PlatformCheck {
  readonly #deps: PlatformCheckDeps;

  constructor(deps: PlatformCheckDeps) {
    this.#deps = deps;
  }

  /** One question per entry of the map; true: all are known. An engine that does not answer changes nothing. */
  async run(signal: AbortSignal): Promise<boolean> {
    const { engines, tier1 } = this.#deps;
    let known = true;
    for (const [runtime, id] of Object.entries(tier1)) {
      const name = runtime.split('::', 1)[0] as Engine;
      const engine = engines[name];
      if (engine && id) known = (await this.#ask(engine, name, id, signal)) && known;
    }
    return known;
  }

  async #ask(engine: Pick<SandboxEngine, 'resolve'>, name: Engine, id: string, signal: AbortSignal): Promise<boolean> {
    const { health, logger } = this.#deps;
    try {
      const known = (await engine.resolve(id, signal)) !== undefined;
      const template = templateClaim(name, id);
      if (health.setPlatform(template, known)) this.#wake(template, known);
      return known;
    } catch (error) {
      if (signal.aborted) throw error;
      logger.warn({ engine: name, template: id }, `the platform template could not be checked: ${messageOf(error)}`);
      return false;
    }
  }

  /** Those that run on the template; of a known one only those that say otherwise. */
  #wake(template: string, known: boolean): void {
    const { skills, wake } = this.#deps;
    for (const skill of skills.list()) {
      const uses = versionsOf(skill).some(
        ({ engine = '', templateID }) => templateID !== undefined && templateClaim(engine, templateID) === template,
      );
      if (uses && saysUnknown(skill) === known) wake(keyOf(skill));
    }
  }
}
