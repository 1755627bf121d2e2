import { effectiveSkill } from '../../api/defaults.ts';
import { FIELD_MANAGERS, FINALIZER } from '../../api/labels.ts';
import { NAMESPACES, SKILLS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import { KubeError } from '../../kube/errors.ts';
import type { EventInput } from '../../kube/events.ts';
import { removeFinalizer } from '../../kube/finalizer.ts';
import type { KubeApi, KubeObject, ReconcileResult } from '../../kube/types.ts';
import { needsFinalizer } from '../../lifecycle/slots.ts';
import type { Hands } from '../byo/port.ts';
import type { Finisher } from './finish.ts';
import { newPass, type Pass, type Slotting } from './pass.ts';

interface DeletionDeps {
  api: KubeApi;
  hands: Hands;
  events: { record(regarding: KubeObject, input: EventInput): void };
  clock: Clock;
}

const RETRY_MS = 30_000;

/** Ends a Skill that has the finalizer: Jobs cancelled, templates and images removed or written into the ledger, finalizer gone. */
export class Deletion {
  readonly #deps: DeletionDeps;
  readonly #slotting: Slotting;
  readonly #finisher: Finisher;

  constructor(deps: DeletionDeps, slotting: Slotting, finisher: Finisher) {
    this.#deps = deps;
    this.#slotting = slotting;
    this.#finisher = finisher;
  }

  async run(skill: Skill, signal: AbortSignal): Promise<ReconcileResult> {
    if (!skill.metadata.finalizers?.includes(FINALIZER)) return {};
    const pass = newPass(skill);
    this.#slotting.apply(pass, { type: 'Deleted' });
    // Also those that no status names: a start whose write was lost.
    await this.#orPast(skill, this.#deps.hands.cancelAll(skill, signal), signal);
    const ctx = this.#slotting.context(skill, undefined);
    const { events, againMs } = await this.#deps.hands.step(pass, ctx, signal);
    for (const event of events) this.#slotting.apply(pass, event);
    if (needsFinalizer(pass.slots) && (await this.#expired(skill, pass, signal))) {
      this.#slotting.apply(pass, { type: 'DeletionExpired' });
    }
    await this.#keepImages(pass, signal);
    await this.#writeLedger(pass, signal);
    const waitMs = needsFinalizer(pass.slots) ? (againMs ?? RETRY_MS) : await this.#clear(pass, signal);
    if (waitMs !== undefined) {
      const message = 'templates and images are being removed';
      await this.#finisher.finish(pass, { kind: 'Progressing', message }, signal);
      return { requeueAfterMs: waitMs };
    }
    await this.#release(skill, signal);
    return {};
  }

  /** Images that were pushed and never recorded; undefined: none is left, or the ledger has them now. */
  async #clear(pass: Pass, signal: AbortSignal): Promise<number | undefined> {
    const { skill } = pass;
    if (effectiveSkill(skill.spec).deletionPolicy === 'Orphan') return undefined;
    const againMs = await this.#deps.hands.clear(skill, signal);
    if (againMs === undefined || !(await this.#expired(skill, pass, signal))) return againMs;
    await this.#record(skill, this.#deps.hands.clearLater(skill, signal), signal);
    return undefined;
  }

  /** One try in a namespace that is going, or for an engine that is not configured; else the bound of the settings (I16). */
  async #expired(skill: Skill, pass: Pass, signal: AbortSignal): Promise<boolean> {
    const left = pass.slots.retired.filter(({ templateID }) => templateID !== undefined);
    if (left.some(({ engine }) => !this.#deps.hands.configuredFor(engine))) return true;
    return this.#past(skill, signal);
  }

  /** Nothing is waited for any longer: the time is up, or the namespace is going. */
  async #past(skill: Skill, signal: AbortSignal): Promise<boolean> {
    if (this.#isOld(skill)) return true;
    const home = await this.#deps.api.get<KubeObject>(NAMESPACES, '', skill.metadata.namespace ?? '', signal);
    return home === undefined || home.metadata.deletionTimestamp !== undefined;
  }

  #isOld({ metadata }: Skill): boolean {
    return this.#deps.clock.now() - Date.parse(metadata.deletionTimestamp ?? '') > this.#deps.hands.boundMs;
  }

  /** The step, whose failure holds the deletion up no longer than all else does (I16). */
  async #orPast(skill: Skill, step: Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await step;
    } catch (error) {
      if (signal.aborted || !(await this.#past(skill, signal))) throw error;
    }
  }

  /** Images that stay behind on purpose are no rubbish. */
  async #keepImages({ skill }: Pass, signal: AbortSignal): Promise<void> {
    if (effectiveSkill(skill.spec).deletionPolicy !== 'Orphan') return;
    await this.#orPast(skill, this.#deps.hands.keepImages(skill, signal), signal);
  }

  /** The record is given up only where it can never be made: the operator's own namespace goes too, or nobody lets it write until the bound. */
  async #record(skill: Skill, write: Promise<void>, signal: AbortSignal): Promise<boolean> {
    try {
      await write;
      return true;
    } catch (error) {
      if (signal.aborted || !(isEnding(error) || this.#isOld(skill))) throw error;
      return false;
    }
  }

  /** Ledger first, then the finalizer, then the event: what is recorded can still be worked off. */
  async #writeLedger(pass: Pass, signal: AbortSignal): Promise<void> {
    for (const action of pass.actions) {
      if (action.type !== 'LedgerEntry') continue;
      const write = this.#deps.hands.toLedger(pass.skill, action.entry, action.why, signal);
      const recorded = await this.#record(pass.skill, write, signal);
      const then = recorded ? 'the operator keeps trying after the Skill is gone' : 'remove them by hand';
      const note = `template ${action.entry.templateID ?? '-'} and image ${action.entry.image ?? '-'} could not be removed (${action.why}); ${then}`;
      this.#deps.events.record(pass.skill, { type: 'Warning', reason: 'RemovalPending', action: 'Delete', note });
    }
  }

  async #release(skill: Skill, signal: AbortSignal): Promise<void> {
    const { namespace = '', name, uid } = skill.metadata;
    const live = await this.#deps.api.get<Skill>(SKILLS, namespace, name, signal);
    if (!live || live.metadata.uid !== uid) return;
    const writer = { api: this.#deps.api, resource: SKILLS, fieldManager: FIELD_MANAGERS.skill };
    await removeFinalizer(writer, live, FINALIZER, signal);
  }
}

/** The namespace that was written to is gone, or going. */
const isEnding = (error: unknown): boolean =>
  error instanceof KubeError &&
  (error.code === 404 || error.causes.some(({ reason }) => reason === 'NamespaceTerminating'));
