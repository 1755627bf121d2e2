import { ANNOTATIONS, FIELD_MANAGERS } from '../../api/labels.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { MARKETPLACE_SOURCES } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import { type Clock, rfc3339 } from '../../base/clock.ts';
import type { Writer } from '../../kube/apply.ts';
import type { Key, KubeApi, ReconcileResult, Store } from '../../kube/types.ts';
import { countSkills, skillsHealthy } from '../../lifecycle/source-summary.ts';
import { type Expecting, sameFields, writeStatus } from '../status-writer.ts';
import { SkillApplier } from './apply.ts';
import { BY_CONTROLLER } from './controller.ts';

interface CountsDeps {
  api: KubeApi;
  sources: Store<MarketplaceSource> & Expecting;
  skills: Store<Skill> & Expecting;
  clock: Clock;
}

/** Between two writes of the counts of one source. */
const PAUSE_MS = 5_000;

/**
 * Keeps status.skills and SkillsHealthy of a source in step with its Skills, and ends handovers; never talks to Git.
 * The first change is written at once, later ones at most every five seconds.
 */
export class CountsController {
  readonly #deps: CountsDeps;
  readonly #applier: SkillApplier;
  readonly #writer: Writer;
  readonly #writtenAt = new Map<Key, number>();

  constructor(deps: CountsDeps) {
    this.#deps = deps;
    this.#applier = new SkillApplier(deps.api, deps.skills);
    this.#writer = { api: deps.api, resource: MARKETPLACE_SOURCES, fieldManager: FIELD_MANAGERS.counts };
  }

  reconcile = async (key: Key, signal: AbortSignal): Promise<ReconcileResult> => {
    const source = this.#deps.sources.get(key);
    if (!source || source.metadata.deletionTimestamp) {
      this.#writtenAt.delete(key);
      return {};
    }
    // While the first pass is still making the Skills a count would be out of date at once; its end wakes this key.
    if (!source.status?.revision) return {};
    const since = this.#deps.clock.monotonic() - (this.#writtenAt.get(key) ?? Number.NEGATIVE_INFINITY);
    if (since < PAUSE_MS) return { requeueAfterMs: PAUSE_MS - since };
    const children = this.#deps.skills
      .byIndex(BY_CONTROLLER, source.metadata.uid ?? '')
      .filter((child) => !child.metadata.deletionTimestamp);
    await this.#settleHandovers(children, signal);
    return this.#write(key, source, children, signal);
  };

  /** A Skill that gave its name away goes as soon as its heir serves. */
  async #settleHandovers(children: Skill[], signal: AbortSignal): Promise<void> {
    for (const child of children) {
      const heir = child.metadata.annotations?.[ANNOTATIONS.handover];
      if (!heir) continue;
      const found = this.#deps.skills.get(`${child.metadata.namespace}/${heir}`);
      if (found?.status?.served) await this.#applier.remove(child, signal);
    }
  }

  async #write(key: Key, source: MarketplaceSource, children: Skill[], signal: AbortSignal): Promise<ReconcileResult> {
    const counts = countSkills(children);
    const before = source.status?.conditions?.find(({ type }) => type === 'SkillsHealthy');
    const now = rfc3339(this.#deps.clock.now());
    const condition = skillsHealthy(counts, source.metadata, before, now);
    const status = { skills: counts, conditions: [condition] };
    const current = { skills: source.status?.skills, conditions: before ? [before] : [] };
    if (sameFields(current, status, ['skills', 'conditions'])) return {};
    this.#writtenAt.set(key, this.#deps.clock.monotonic());
    await writeStatus(this.#writer, this.#deps.sources, source, status, signal);
    return {};
  }
}
