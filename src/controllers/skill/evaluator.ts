import type { Skill, Version } from '../../api/skill.ts';
import type { Compute } from '../../base/compute.ts';
import { type Key, keyOf, type ReconcileResult } from '../../kube/types.ts';
import { invalidMessage } from '../../lifecycle/findings.ts';
import { RUNTIME_INFO } from '../../protocol/runtime.ts';
import type { Evaluation } from '../../store/package.types.ts';
import type { PackageStore } from '../../store/packages.ts';
import { packageThing } from '../../store/sweep.ts';
import type { Health } from '../health.ts';
import type { Pins } from '../pins.ts';
import { isObserved, isRequested } from '../requests.ts';
import { type ContentDeps, SkillContent, type Target } from './content.ts';
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
  /** What heal found out. */
  health: Health;
  /** Keeps the sweep away from what this process is about to name. */
  pins: Pins;
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
    this.#content.forget(key);
  }

  /** The pass failed: what the remote said last may be why. */
  failed(key: Key): void {
    this.#content.forget(key);
  }

  /** Brings content into the store where it moved. A result: come back later, nothing was decided. */
  async run(pass: Pass, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const { skill } = pass;
    pass.verifying = this.#deps.health.shouldVerify(keyOf(skill)) || isRequested(skill);
    if (skill.spec.source.git) pass.step = 'Fetched';
    const target = await this.#content.target(skill, signal);
    pass.lookedAgoMs = target.ageMs;
    if (skill.spec.source.git) pass.passed.Fetched = fetchedMessage(skill, target);
    const due = pass.verifying ? 'request' : this.#dueBecause(skill, target);
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
    await this.#evaluate(pass, target, signal);
    if (pass.verifying) await this.#verifyServed(pass, signal);
    this.#deps.health.verified(keyOf(skill));
    pass.step = undefined;
    return undefined;
  }

  /** Why the content has to be looked at, or undefined: it is what the status describes. */
  #dueBecause(skill: Skill, target: Target): 'content' | 'settings' | undefined {
    const { observed } = skill.status ?? {};
    if (target.tree === undefined || observed?.tree !== target.tree) return 'content';
    return isCurrentConfig(this.#deps.settings, observed.config) ? undefined : 'settings';
  }

  async #evaluate(pass: Pass, target: Target, signal: AbortSignal): Promise<void> {
    const { skill } = pass;
    const content = await target.read(signal);
    const { observed } = skill.status ?? {};
    const current = isObserved(skill) && isCurrentConfig(this.#deps.settings, observed?.config);
    if (!pass.verifying && content.tree === observed?.tree && current) {
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
    const version = await this.#materialize(pass, content.commit, evaluation, signal);
    pass.passed.Materialized = 'the package is in the bucket';
    pass.evaluated = evaluated;
    if (this.#names.verdict(skill).kind === 'free') this.#names.claim(skill);
    this.#slotting.apply(pass, { type: 'NewDigest', version });
  }

  /** A served version that is not what Git offers now cannot be stored again: whether it is whole has to be read. */
  async #verifyServed({ skill, slots, evaluated }: Pass, signal: AbortSignal): Promise<void> {
    const { served } = slots;
    if (!served || served.digest === evaluated?.digest) return;
    const namespace = skill.metadata.namespace ?? '';
    const { packages, health } = this.#deps;
    const { state } = await this.#store.run(keyOf(skill), () =>
      packages.verify(namespace, served.digest, served.manifestSHA256, signal),
    );
    health.learn(packageThing(namespace, served.digest), state === 'intact' ? 'whole' : 'lost');
  }

  /** Puts the package into the store, or verifies and heals what lies there. */
  async #materialize(pass: Pass, commit: string, { report, built }: Evaluation, signal: AbortSignal): Promise<Version> {
    const { frontmatter } = report;
    if (!built || !frontmatter) throw new TypeError('a valid report without a package');
    const { skill, slots } = pass;
    const namespace = skill.metadata.namespace ?? '';
    const known = [slots.served, slots.candidate, ...slots.retired].some((slot) => slot?.digest === built.digest);
    const thing = packageThing(namespace, built.digest);
    const { packages, pins, health } = this.#deps;
    const doubted = pass.verifying || health.packageState(thing) === 'lost';
    await pins.hold(thing, keyOf(skill), signal);
    if (!known || doubted) {
      await this.#store.run(keyOf(skill), async () => {
        const stored = doubted && (await packages.verify(namespace, built.digest, built.manifestSHA256, signal));
        if (stored && stored.state === 'intact') return;
        // Bytes are overwritten only where some were stored before and are no longer what they should be.
        const heal = stored !== false && (known || stored.state === 'corrupt');
        await packages.put(namespace, built, signal, { heal });
      });
    }
    if (doubted) health.learn(thing, 'whole');
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
