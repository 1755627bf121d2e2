import { effectiveSkill, effectiveSource, notSupportedYet } from '../../api/defaults.ts';
import { ANNOTATIONS, FIELD_MANAGERS, FINALIZER } from '../../api/labels.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { SKILLS } from '../../api/resources.ts';
import type { Skill, SkillStatus, Version } from '../../api/skill.ts';
import { type Clock, rfc3339 } from '../../base/clock.ts';
import type { Compute } from '../../base/compute.ts';
import { stalled } from '../../base/errors.ts';
import type { Writer } from '../../kube/apply.ts';
import type { EventInput } from '../../kube/events.ts';
import { type Key, type KubeApi, type KubeObject, keyOf, type ReconcileResult, type Store } from '../../kube/types.ts';
import type { Outcome } from '../../lifecycle/condition.ts';
import { invalidMessage } from '../../lifecycle/findings.ts';
import { type SkillStep, summarizeSkill } from '../../lifecycle/skill-summary.ts';
import { type Action, type Context, type Slots, slotsOf } from '../../lifecycle/slots.ts';
import { transition } from '../../lifecycle/transition.ts';
import type { TreeSource } from '../../marketplace/port.ts';
import { RUNTIME_INFO } from '../../protocol/runtime.ts';
import type { Evaluation } from '../../store/package.types.ts';
import type { PackageStore } from '../../store/packages.ts';
import type { Remotes } from '../remotes.ts';
import { explained } from '../retry-now.ts';
import { type Expecting, sameFields, writeStatus } from '../status-writer.ts';
import { SkillContent, type Target } from './content.ts';
import { evaluate } from './evaluate.ts';
import { skillEvents } from './events.ts';
import { BackgroundLane } from './lane.ts';
import { Names } from './names.ts';
import { configOf, isCurrentConfig, type SkillSettings } from './settings.ts';
import { type Evaluated, nextStatus, SKILL_STATUS_FIELDS } from './status.ts';
import { Wire } from './wire.ts';

/** What the controller works with. */
export interface SkillDeps {
  api: KubeApi;
  sources: Store<MarketplaceSource>;
  /** Index `name`: namespace and bare name. */
  skills: Store<Skill> & Expecting;
  trees: TreeSource;
  remotes: Remotes;
  packages: PackageStore;
  compute: Compute;
  settings: SkillSettings;
  events: { record(regarding: KubeObject, input: EventInput): void };
  clock: Clock;
  random?: () => number;
  /** Puts a key back into the queue at once. */
  wake: (key: Key) => void;
}

/** A Skill behind an unvalidated peer is woken by it; this is for a wake that got lost. */
const PEER_LOOK_MS = 60_000;
const JITTER = 0.1;

/** What a pass learnt so far. */
interface Pass {
  skill: Skill;
  slots: Slots;
  actions: Action[];
  step?: SkillStep;
  passed: Partial<Record<SkillStep, string>>;
  evaluated?: Evaluated;
  invalid?: string | undefined;
}

/** Reconciles Skills: read, validate, package, store, promote, one status write. */
export class SkillController {
  readonly names: Names;
  readonly #deps: SkillDeps;
  readonly #content: SkillContent;
  readonly #store: Wire;
  readonly #writer: Writer;
  readonly #lane: BackgroundLane;

  constructor(deps: SkillDeps) {
    this.#deps = deps;
    this.names = new Names(deps.skills);
    this.#content = new SkillContent(deps);
    this.#store = new Wire(deps.clock, deps.wake);
    this.#lane = new BackgroundLane(deps.clock);
    this.#writer = { api: deps.api, resource: SKILLS, fieldManager: FIELD_MANAGERS.skill };
  }

  /** How often a failed Skill is looked at, milliseconds. */
  intervalOf = (key: Key): number => {
    const skill = this.#deps.skills.get(key);
    if (!skill) return PEER_LOOK_MS;
    const ref = skill.spec.source.marketplaceRef;
    const source = ref && this.#deps.sources.get(`${skill.metadata.namespace}/${ref.name}`);
    return source ? effectiveSource(source.spec).intervalMs : effectiveSkill(skill.spec).intervalMs;
  };

  reconcile = async (key: Key, signal: AbortSignal): Promise<ReconcileResult> => {
    const skill = this.#deps.skills.get(key);
    if (!skill || skill.metadata.deletionTimestamp) {
      this.#deps.remotes.forget('skill', key);
      this.#store.forget(key);
      this.#lane.leave(key);
      if (skill) this.names.release(skill);
      return {};
    }
    const pass: Pass = { skill, slots: slotsOf(skill), actions: [], passed: {} };
    try {
      const again = skill.spec.suspend ? undefined : await this.#run(pass, signal);
      if (again) return again;
      this.#settle(pass);
      await this.#finish(pass, { kind: 'Done' }, signal);
    } catch (error) {
      this.names.release(skill);
      if (signal.aborted) throw error;
      const failure = explained(error, 'skill', skill);
      await this.#finish({ ...pass, slots: slotsOf(skill), actions: [] }, failed(failure, pass), signal);
      throw failure;
    }
    if (!skill.spec.source.git || skill.spec.suspend) return {};
    const jitter = 1 + JITTER * (this.#deps.random ?? Math.random)();
    return { requeueAfterMs: Math.round(this.intervalOf(key) * jitter) };
  };

  /** Brings content into the store where it moved. A result: come back later, nothing was decided. */
  async #run(pass: Pass, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const { skill } = pass;
    const unsupported = notSupportedYet(skill.spec);
    if (unsupported) throw stalled('NotSupportedYet', `${unsupported} is not supported by this release; remove it`);
    if (skill.spec.source.git) pass.step = 'Fetched';
    const target = await this.#content.target(skill, signal);
    if (skill.spec.source.git) pass.passed.Fetched = this.#fetchedMessage(skill, target);
    const due = this.#dueBecause(skill, target);
    if (due === undefined) {
      pass.invalid = standing(skill, 'Validated', 'Invalid');
      return undefined;
    }
    const verdict = this.names.verdict(skill);
    if (verdict.kind === 'wait') return { requeueAfterMs: PEER_LOOK_MS };
    const wait = due === 'settings' ? this.#lane.enter(keyOf(skill)) : 0;
    if (wait > 0) return { requeueAfterMs: wait };
    this.#lane.leave(keyOf(skill));
    this.#store.enter(keyOf(skill));
    await this.#evaluate(pass, target, due === 'request', signal);
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

  #fetchedMessage(skill: Skill, target: Target): string {
    // The commit of the last evaluation: a commit that leaves this directory alone changes nothing in the status.
    const before = skill.status?.conditions?.find(({ type, status }) => type === 'Fetched' && status === 'True');
    return before && target.tree !== undefined ? before.message : target.revision;
  }

  async #evaluate(pass: Pass, target: Target, verify: boolean, signal: AbortSignal): Promise<void> {
    const { skill } = pass;
    const content = await target.read(signal);
    const observedTree = skill.status?.observed?.tree;
    if (
      !verify &&
      content.tree === observedTree &&
      isCurrentConfig(this.#deps.settings, skill.status?.observed?.config)
    ) {
      // A new commit that left this directory alone.
      pass.passed.Fetched = standing(skill, 'Fetched', 'Succeeded') ?? target.revision;
      pass.invalid = standing(skill, 'Validated', 'Invalid');
      return;
    }
    const { report, built } = await evaluate(this.#deps.compute, content.files, signal);
    const { frontmatter, violations, warnings } = report;
    const evaluated: Evaluated = {
      observed: {
        commit: content.commit,
        tree: content.tree,
        config: configOf(this.#deps.settings, frontmatter?.runtime),
      },
      violations,
      warnings,
      ...(report.valid ? { frontmatter, digest: built?.digest } : {}),
    };
    if (!report.valid) {
      pass.evaluated = evaluated;
      pass.invalid = invalidMessage(violations);
      this.#apply(pass, { type: 'ContentInvalid' });
      return;
    }
    pass.passed.Validated = 'the content follows the SKILL protocol';
    pass.step = 'Materialized';
    const version = await this.#materialize(pass, content.commit, { report, built }, verify, signal);
    pass.passed.Materialized = 'the package is in the bucket';
    pass.evaluated = evaluated;
    const verdict = this.names.verdict(skill);
    if (verdict.kind === 'free') this.names.claim(skill);
    this.#apply(pass, { type: 'NewDigest', version });
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

  /** The events that every pass brings: settings, limits, and who has the name. */
  #settle(pass: Pass): void {
    if (pass.skill.spec.suspend) {
      this.#apply(pass, { type: 'Suspended' });
      return;
    }
    const { tier1 } = this.#deps.settings;
    const templateIDs = Object.fromEntries(Object.entries(tier1).flatMap(([key, id]) => (id ? [[key, id]] : [])));
    this.#apply(pass, { type: 'Tier1MapChanged', templateIDs });
    this.#apply(pass, { type: 'LimitChanged' });
    const taken = this.names.verdict(pass.skill).kind === 'taken';
    if (!taken) this.names.claim(pass.skill);
    this.#apply(pass, { type: taken ? 'NameTaken' : 'NameFree' });
    if (!pass.slots.served) this.names.release(pass.skill);
  }

  #apply(pass: Pass, event: Parameters<typeof transition>[1]): void {
    const step = transition(pass.slots, event, this.#context(pass.skill));
    pass.slots = step.slots;
    pass.actions.push(...step.actions);
  }

  #context(skill: Skill): Context {
    const { historyLimit, deletionPolicy } = limitsOf(skill);
    const verdict = this.names.verdict(skill);
    const holder = verdict.kind === 'taken' ? verdict.holder : verdict.kind === 'wait' ? verdict.behind : undefined;
    return {
      now: rfc3339(this.#deps.clock.now()),
      historyLimit,
      deletionPolicy,
      nameHolder: holder,
      buildsConfigured: false,
      hasFinalizer: skill.metadata.finalizers?.includes(FINALIZER) ?? false,
      deleting: false,
      suspended: skill.spec.suspend ?? false,
    };
  }

  async #finish(pass: Pass, outcome: Outcome<SkillStep>, signal: AbortSignal): Promise<void> {
    const { skill, slots, evaluated, actions } = pass;
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
    });
    const requestedAt = skill.metadata.annotations?.[ANNOTATIONS.requestedAt];
    const next = nextStatus({ skill, slots, evaluated, summary, requestedAt }, (current, wanted) =>
      sameFields(current, wanted, SKILL_STATUS_FIELDS),
    );
    if (!next.changed) return;
    const status = next.needsLists ? await this.#withLists(skill, next.status, signal) : next.status;
    await writeStatus(this.#writer, this.#deps.skills, skill, status, signal);
    for (const event of skillEvents(skill, summary.conditions, actions)) this.#deps.events.record(skill, event);
  }

  /** The cache dropped the lists; a write that did not make them anew takes them from the live object. */
  async #withLists(skill: Skill, status: SkillStatus, signal: AbortSignal): Promise<SkillStatus> {
    const { namespace = '', name } = skill.metadata;
    const live = await this.#deps.api.get<Skill>(SKILLS, namespace, name, signal);
    const { violations, warnings } = live?.status ?? {};
    return { ...status, ...(violations ? { violations } : {}), ...(warnings ? { warnings } : {}) };
  }
}

function limitsOf(skill: Skill): { historyLimit: number; deletionPolicy: 'Delete' | 'Orphan' } {
  const { versionHistoryLimit, deletionPolicy } = effectiveSkill(skill.spec);
  return { historyLimit: versionHistoryLimit, deletionPolicy };
}

/** Message of a condition that stands with that reason. */
const standing = (skill: Skill, type: string, reason: string): string | undefined =>
  skill.status?.conditions?.find((condition) => condition.type === type && condition.reason === reason)?.message;

const failed = (failure: ReturnType<typeof explained>, pass: Pass): Outcome<SkillStep> => ({
  kind: 'Failed',
  policy: failure.policy,
  reason: failure.reason,
  message: failure.message,
  ...(pass.step === undefined ? {} : { step: pass.step }),
});
