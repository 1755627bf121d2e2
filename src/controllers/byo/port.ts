import type { Skill } from '../../api/skill.ts';
import type { Context, Event, Slots } from '../../lifecycle/slots.ts';

/** What a pass over the external objects of a Skill brought. */
export interface HandsResult {
  /** What happened, in order; the caller applies them to the slots and writes the status. */
  events: Event[];
  /** Look again after this many milliseconds. */
  againMs?: number | undefined;
  /** What the builder said that it ignored in the Dockerfile; undefined: no build ended. */
  ignored?: readonly string[] | undefined;
}

/** What the hands work on. */
export interface HandsTask {
  skill: Skill;
  slots: Slots;
  /** Value of the annotation rebuild that the candidate answers. */
  rebuild?: string | undefined;
}

/** Everything outside the cluster that is made for a Skill: build Jobs, images, templates. */
export interface Hands {
  /** How long the removal of what a Skill leaves behind may hold up its deletion, milliseconds (I16). */
  readonly boundMs: number;
  /** Whether skills of this engine can be built and registered here. */
  configuredFor(engine: string | undefined): boolean;
  /** Carries out what the slots ask for, one step further: safe to repeat and to die at any await. */
  step(task: HandsTask, ctx: Context, signal: AbortSignal): Promise<HandsResult>;
  /** Cancels one Job; no error when it is gone. */
  cancelJob(jobName: string, signal: AbortSignal): Promise<void>;
  /** Cancels every Job of a Skill, recorded or not. */
  cancelAll(skill: Skill, signal: AbortSignal): Promise<void>;
  /** Writes a version that could not be removed into the ledger. */
  toLedger(skill: Skill, entry: Slots['retired'][number], why: string, signal: AbortSignal): Promise<void>;
  /** A Skill with deletionPolicy Orphan goes: its images stay, and their records say so. */
  keepImages(skill: Skill, signal: AbortSignal): Promise<void>;
  /**
   * Removes images that its builds pushed and no status named; called when no slot holds one any more.
   * undefined: there is none left; else: milliseconds until it may work.
   */
  clear(skill: Skill, signal: AbortSignal): Promise<number | undefined>;
  /** Leaves that to the ledger. */
  clearLater(skill: Skill, signal: AbortSignal): Promise<void>;
  /** Digests of the Skill that the ledger still has to remove something of. */
  ledgerDigests(skill: Skill): string[];
  /** The pass failed: others go first. */
  yieldTurn(skill: Skill): void;
}
