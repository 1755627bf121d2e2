import { effectiveSkill, effectiveSource } from '../../api/defaults.ts';
import { ANNOTATIONS, FIELD_MANAGERS, FINALIZER } from '../../api/labels.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { SKILLS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import type { PolicyError } from '../../base/errors.ts';
import type { EventInput } from '../../kube/events.ts';
import { removeFinalizer } from '../../kube/finalizer.ts';
import {
  type Key,
  type KubeApi,
  type KubeObject,
  keyOf,
  type ReconcileResult,
  type Store,
  splitKey,
} from '../../kube/types.ts';
import { needsFinalizer, slotsOf } from '../../lifecycle/slots.ts';
import type { Hands } from '../byo/port.ts';
import { HostBusy } from '../githosts.ts';
import { skillThing } from '../pins.ts';
import { explained } from '../retry-now.ts';
import type { Expecting } from '../status-writer.ts';
import { Deletion } from './deletion.ts';
import { Evaluator, type EvaluatorDeps } from './evaluator.ts';
import { Finisher } from './finish.ts';
import { ignoredFindings } from './ignored.ts';
import { packageLost } from './lost.ts';
import { Names } from './names.ts';
import { failed, newPass, type Pass, Slotting, withoutProgress } from './pass.ts';
import { templateUnknown } from './template.ts';

/** What the controller works with. */
export interface SkillDeps extends EvaluatorDeps {
  api: KubeApi;
  sources: Store<MarketplaceSource>;
  /** Index `name`: namespace and bare name. */
  skills: Store<Skill> & Expecting;
  /** Builds and engines; handsOff() where there are none. */
  hands: Hands;
  events: { record(regarding: KubeObject, input: EventInput): void };
  random?: () => number;
}

const UNKNOWN_INTERVAL_MS = 60_000;
const JITTER = 0.1;
/** Until the cache shows the Skill as it is now. */
const CHANGED_MS = 500;

/** Reconciles Skills: content into the store, slots by the lifecycle table, external objects by the hands, one status write. */
export class SkillController {
  readonly names: Names;
  readonly #deps: SkillDeps;
  readonly #slotting: Slotting;
  readonly #evaluator: Evaluator;
  readonly #finisher: Finisher;
  readonly #deletion: Deletion;

  constructor(deps: SkillDeps) {
    this.#deps = deps;
    this.names = new Names(deps.skills);
    this.#slotting = new Slotting(this.names, deps.hands, deps.clock);
    this.#evaluator = new Evaluator(deps, this.names, this.#slotting);
    this.#finisher = new Finisher(deps);
    this.#deletion = new Deletion(deps, this.#slotting, this.#finisher);
  }

  /** How often a failed Skill is looked at, milliseconds. */
  intervalOf = (key: Key): number => {
    const skill = this.#deps.skills.get(key);
    if (!skill) return UNKNOWN_INTERVAL_MS;
    const ref = skill.spec.source.marketplaceRef;
    const source = ref && this.#deps.sources.get(`${skill.metadata.namespace}/${ref.name}`);
    return source ? effectiveSource(source.spec).intervalMs : effectiveSkill(skill.spec).intervalMs;
  };

  reconcile = async (key: Key, signal: AbortSignal): Promise<ReconcileResult> => {
    const { pins } = this.#deps;
    try {
      await pins.hold(thingOf(key), key, signal);
      return await this.#reconcile(key, signal);
    } finally {
      // Not before the status write has returned: from then on a live list of the Skills shows what they name.
      pins.release(key);
    }
  };

  async #reconcile(key: Key, signal: AbortSignal): Promise<ReconcileResult> {
    const skill = this.#deps.skills.get(key);
    if (!skill || skill.metadata.deletionTimestamp) {
      this.#deps.remotes.forget('skill', key);
      this.#evaluator.forget(key);
      this.#deps.health.forget(key);
      if (!skill) return {};
      this.names.release(skill);
      return this.#deletion.run(skill, signal);
    }
    const pass = newPass(skill);
    try {
      const again = skill.spec.suspend ? undefined : await this.#evaluator.run(pass, signal);
      if (again) return again;
      this.#settle(pass);
      const againMs = await this.#useHands(pass, signal);
      await this.#finisher.finish(this.#judged(pass), { kind: 'Done' }, signal);
      this.#deps.health.templateHandled(key);
      const clearMs = await this.#releaseFinalizer(pass, signal);
      return earliest(againMs, clearMs, this.#ownInterval(pass));
    } catch (error) {
      this.names.release(skill);
      if (signal.aborted) throw error;
      if (error instanceof HostBusy) return this.#parked(skill, error);
      const failure = explained(error, 'skill', skill);
      this.#evaluator.failed(key);
      // The Skill changed during the pass: that is no failure of it, and its status is for the next pass to write.
      if (failure.reason === 'Conflict') return { requeueAfterMs: failure.retryAfterMs ?? CHANGED_MS };
      await this.#tell(failure, pass, signal);
      throw failure;
    }
  }

  /** Writes what failed. */
  async #tell(failure: PolicyError, pass: Pass, signal: AbortSignal): Promise<void> {
    const { skill } = pass;
    this.#deps.hands.yieldTurn(skill);
    if (failure.reason === 'StoreCorrupt' && !pass.verifying) this.#verifySoon(keyOf(skill));
    const before = this.#judged(withoutProgress(pass), failure);
    await this.#finisher.finish(before, failed(failure, pass), signal);
  }

  /** Another Skill may have the turn at builds, too, that this one cannot use now. */
  #parked(skill: Skill, { lookAgainMs }: HostBusy): ReconcileResult {
    this.#deps.hands.yieldTurn(skill);
    return { requeueAfterMs: lookAgainMs, undecided: true };
  }

  /** Damaged bytes are written anew by a pass that reads them; it need not wait for a person or for the next heal. */
  #verifySoon(key: Key): void {
    this.#deps.health.requestVerify(key);
    this.#deps.wake(key);
  }

  /** The pass with what heal found out about store and engine. */
  #judged(pass: Pass, failure?: PolicyError): Pass {
    const { health } = this.#deps;
    const { skill, slots } = pass;
    return {
      ...pass,
      packageLost: packageLost(pass, health, failure),
      templateUnknown: templateUnknown(skill, slots, health),
    };
  }

  /** The events that every pass brings: settings, limits, rebuild, and who has the name. */
  #settle(pass: Pass): void {
    const { skill } = pass;
    const apply = (event: Parameters<Slotting['apply']>[1]) => this.#slotting.apply(pass, event);
    if (skill.spec.suspend) {
      apply({ type: 'Suspended' });
      return;
    }
    const { tier1 } = this.#deps.settings;
    const templateIDs = Object.fromEntries(Object.entries(tier1).flatMap(([key, id]) => (id ? [[key, id]] : [])));
    apply({ type: 'Tier1MapChanged', templateIDs });
    apply({ type: 'LimitChanged' });
    const lost = this.#deps.health.lostTemplate(keyOf(skill));
    if (lost !== undefined) apply({ type: 'TemplateLost', templateID: lost });
    const rebuild = skill.metadata.annotations?.[ANNOTATIONS.rebuild];
    if (rebuild !== undefined && rebuild !== pass.rebuild) {
      pass.rebuild = rebuild;
      apply({ type: 'Rebuild' });
    }
    const taken = this.names.verdict(skill).kind === 'taken';
    if (!taken) this.names.claim(skill);
    apply({ type: taken ? 'NameTaken' : 'NameFree' });
    if (!pass.slots.served) this.names.release(skill);
  }

  /** Builds, engines and removals, one step; what must happen before the status write happens here. */
  async #useHands(pass: Pass, signal: AbortSignal): Promise<number | undefined> {
    const { hands } = this.#deps;
    const context = this.#slotting.context(pass.skill, pass.slots.candidate?.engine);
    const before = pass.slots.retired;
    const { events, againMs, ignored } = await hands.step(pass, context, signal);
    if (ignored) pass.ignored = ignoredFindings(ignored, pass.slots.candidate?.engine);
    for (const event of events) this.#slotting.apply(pass, event);
    // What these events retired has to be removed, and no other event would bring that pass.
    const retires = pass.slots.retired.some((entry) => entry.state === 'Deleting' && !before.includes(entry));
    for (const action of pass.actions) {
      if (action.type === 'CancelJob') await hands.cancelJob(action.jobName, signal);
      if (action.type === 'LedgerEntry') await hands.toLedger(pass.skill, action.entry, action.why, signal);
    }
    if (pass.slots.served) this.names.claim(pass.skill);
    await this.#introduce(pass, signal);
    return retires ? 0 : againMs;
  }

  /** A version that is served later than it was evaluated brings its own name and description along. */
  async #introduce(pass: Pass, signal: AbortSignal): Promise<void> {
    const { skill, slots, evaluated } = pass;
    const { served } = slots;
    const before = skill.status?.served;
    if (!served || !before || before.digest === served.digest || evaluated?.digest === served.digest) return;
    const namespace = skill.metadata.namespace ?? '';
    const { digest, manifestSHA256 } = served;
    const manifest = await this.#deps.packages.readManifest(namespace, digest, manifestSHA256, signal);
    pass.promoted = manifest?.frontmatter;
  }

  /** Nothing outside is held any more: deletion need not wait for the operator. A number: when to try again, milliseconds. */
  async #releaseFinalizer({ skill, slots }: Pass, signal: AbortSignal): Promise<number | undefined> {
    if (!skill.metadata.finalizers?.includes(FINALIZER) || needsFinalizer(slots)) return undefined;
    if (slots.candidate?.phase === 'Queued') return undefined;
    const orphans = effectiveSkill(skill.spec).deletionPolicy === 'Orphan';
    const againMs = orphans ? undefined : await this.#deps.hands.clear(skill, signal);
    if (againMs !== undefined) return againMs;
    const { namespace = '', name, uid } = skill.metadata;
    const live = await this.#deps.api.get<Skill>(SKILLS, namespace, name, signal);
    if (!live || live.metadata.uid !== uid || needsFinalizer(slotsOf(live))) return undefined;
    const writer = { api: this.#deps.api, resource: SKILLS, fieldManager: FIELD_MANAGERS.skill };
    const written = await removeFinalizer(writer, live, FINALIZER, signal);
    this.#deps.skills.expect(keyOf(skill), written.metadata.resourceVersion);
    return undefined;
  }

  #ownInterval({ skill, lookedAgoMs = 0 }: Pass): number | undefined {
    if (!skill.spec.source.git || skill.spec.suspend) return undefined;
    const jitter = 1 + JITTER * (this.#deps.random ?? Math.random)();
    return Math.max(0, Math.round(this.intervalOf(keyOf(skill)) * jitter - lookedAgoMs));
  }
}

function earliest(...waits: (number | undefined)[]): ReconcileResult {
  const given = waits.filter((wait) => wait !== undefined);
  return given.length > 0 ? { requeueAfterMs: Math.min(...given) } : {};
}

function thingOf(key: Key): string {
  const { namespace, name } = splitKey(key);
  return skillThing(namespace, name);
}
