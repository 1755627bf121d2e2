import { notSupportedYet } from '../../api/defaults.ts';
import { ANNOTATIONS } from '../../api/labels.ts';
import type { Skill, Version } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import type { Compute } from '../../base/compute.ts';
import { stalled } from '../../base/errors.ts';
import { type Key, keyOf, type ReconcileResult } from '../../kube/types.ts';
import { invalidMessage } from '../../lifecycle/findings.ts';
import { RUNTIME_INFO } from '../../protocol/runtime.ts';
import type { Evaluation } from '../../store/package.types.ts';
import type { PackageStore } from '../../store/packages.ts';
import { type ContentDeps, isObserved, SkillContent, type Target } from './content.ts';
import { evaluate } from './evaluate.ts';
import { BackgroundLane } from './lane.ts';
import type { Names } from './names.ts';
import { type Pass, type Slotting, standing } from './pass.ts';
import { configOf, isCurrentConfig, type SkillSettings } from './settings.ts';
import type { Evaluated } from './status.ts';
import { Wire } from './wire.ts';

/** What evaluations work with. */
export interface EvaluatorDeps extends ContentDeps {
  packages: PackageStore;
  compute: Compute;
  settings: SkillSettings;
  clock: Clock;
  /** Puts a key back into the queue at once. */
  wake: (key: Key) => void;
}

/** A Skill behind an unvalidated peer is woken by it; this is for a wake that got lost. */
const PEER_LOOK_MS = 60_000;

/** Finds out what a Skill points at and, where that moved, validates it and puts its package into the store. */
export class Evaluator {
  readonly #deps: EvaluatorDeps;
  readonly #names: Names;
  readonly #slotting: Slotting;
  readonly #content: SkillContent;
  readonly #store: Wire;
  readonly #lane: BackgroundLane;

  constructor(deps: EvaluatorDeps, names: Names, slotting: Slotting) {
    this.#deps = deps;
    this.#names = names;
    this.#slotting = slotting;
    this.#content = new SkillContent(deps);
    this.#store = new Wire(deps.clock, deps.wake);
    this.#lane = new BackgroundLane(deps.clock);
  }

  /** The Skill is gone. */
  forget(key: Key): void {
    this.#store.forget(key);
    this.#lane.leave(key);
  }

  /** Brings content into the store where it moved. A result: come back later, nothing was decided. */
  async run(pass: Pass, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const { skill } = pass;
    const unsupported = notSupportedYet(skill.spec);
    if (unsupported) throw stalled('NotSupportedYet', `${unsupported} is not supported by this release; remove it`);
    if (skill.spec.source.git) pass.step = 'Fetched';
    const target = await this.#content.target(skill, signal);
    if (skill.spec.source.git) pass.passed.Fetched = fetchedMessage(skill, target);
    const due = this.#dueBecause(skill, target);
    if (due === undefined) {
      pass.step = undefined;
      pass.invalid = standing(skill, 'Validated', 'Invalid');
      return undefined;
    }
    if (this.#names.verdict(skill).kind === 'wait') return { requeueAfterMs: PEER_LOOK_MS };
    const wait = due === 'settings' ? this.#lane.enter(keyOf(skill)) : 0;
    if (wait > 0) return { requeueAfterMs: wait };
    this.#lane.leave(keyOf(skill));
    // While the store is down that is what the pass fails for, not the fetch that it does not even try.
    const { step } = pass;
    pass.step = 'Materialized';
    this.#store.enter(keyOf(skill));
    pass.step = step;
    await this.#evaluate(pass, target, due === 'request', signal);
    pass.step = undefined;
    return undefined;
  }

  /** Why the content has to be looked at, or undefined: it is what the status describes. */
  #dueBecause(skill: Skill, target: Target): 'content' | 'request' | 'settings' | undefined {
    const { observed, lastHandledReconcileAt } = skill.status ?? {};
    const requestedAt = skill.metadata.annotations?.[ANNOTATIONS.requestedAt];
    if (requestedAt !== undefined && requestedAt !== lastHandledReconcileAt) return 'request';
    if (target.tree === undefined || observed?.tree !== target.tree) return 'content';
    return isCurrentConfig(this.#deps.settings, observed.config) ? undefined : 'settings';
  }

  async #evaluate(pass: Pass, target: Target, verify: boolean, signal: AbortSignal): Promise<void> {
    const { skill } = pass;
    const content = await target.read(signal);
    const { observed } = skill.status ?? {};
    const current = isObserved(skill) && isCurrentConfig(this.#deps.settings, observed?.config);
    if (!verify && content.tree === observed?.tree && current) {
      // A new commit that left this directory alone.
      pass.passed.Fetched = standing(skill, 'Fetched', 'Succeeded') ?? target.revision;
      pass.invalid = standing(skill, 'Validated', 'Invalid');
      return;
    }
    const evaluation = await evaluate(this.#deps.compute, content.files, signal);
    const { report, built } = evaluation;
    const config = configOf(this.#deps.settings, report.frontmatter?.runtime);
    const evaluated: Evaluated = {
      observed: { commit: content.commit, tree: content.tree, config },
      violations: report.violations,
      warnings: report.warnings,
      ...(report.valid ? { frontmatter: report.frontmatter, digest: built?.digest } : {}),
    };
    if (!report.valid) {
      pass.evaluated = evaluated;
      pass.invalid = invalidMessage(report.violations);
      this.#slotting.apply(pass, { type: 'ContentInvalid' });
      return;
    }
    pass.passed.Validated = 'the content follows the SKILL protocol';
    pass.step = 'Materialized';
    const version = await this.#materialize(pass, content.commit, evaluation, verify, signal);
    pass.passed.Materialized = 'the package is in the bucket';
    pass.evaluated = evaluated;
    if (this.#names.verdict(skill).kind === 'free') this.#names.claim(skill);
    this.#slotting.apply(pass, { type: 'NewDigest', version });
  }

  /** Puts the package into the store, or verifies and heals what lies there. */
  async #materialize(
    pass: Pass,
    commit: string,
    { report, built }: Evaluation,
    verify: boolean,
    signal: AbortSignal,
  ): Promise<Version> {
    const { frontmatter } = report;
    if (!built || !frontmatter) throw new TypeError('a valid report without a package');
    const { skill, slots } = pass;
    const namespace = skill.metadata.namespace ?? '';
    const known = [slots.served, slots.candidate, ...slots.retired].find((slot) => slot?.digest === built.digest);
    const store = this.#deps.packages;
    if (!known || verify) {
      await this.#store.run(keyOf(skill), async () => {
        const stored = known && (await store.verify(namespace, known.digest, built.manifestSHA256, signal));
        const heal = stored !== undefined && stored.state !== 'intact';
        if (!known || heal) await store.put(namespace, built, signal, { heal });
      });
    }
    const { engine } = RUNTIME_INFO[frontmatter.runtime];
    const templateID = this.#deps.settings.tier1[frontmatter.runtime];
    return {
      version: built.digest.slice(0, 12),
      digest: built.digest,
      manifestSHA256: built.manifestSHA256,
      commit,
      runtime: frontmatter.runtime,
      ...(engine ? { engine } : {}),
      ...(templateID ? { templateID } : {}),
      files: built.fileCount,
      bytes: built.byteCount,
    };
  }
}

function fetchedMessage(skill: Skill, target: Target): string {
  // The commit of the last evaluation: a commit that leaves this directory alone changes nothing in the status.
  const before = skill.status?.conditions?.find(({ type, status }) => type === 'Fetched' && status === 'True');
  return before && target.tree !== undefined ? before.message : target.revision;
}
