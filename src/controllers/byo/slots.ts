import type { Skill } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import { planQueue } from '../../build/queue.ts';
import type { BuildSettings } from '../../build/settings.ts';
import { type Key, keyOf, type Store } from '../../kube/types.ts';

/** Whether a build may start now, or what its status says meanwhile. */
export type Turn = { start: true } | { start: false; message: string };

/** Build slots of the installation and of each namespace, from the statuses in the cache and the starts they do not show yet. */
export class BuildSlots {
  readonly #skills: Store<Skill>;
  readonly #limits: BuildSettings['limits'];
  readonly #clock: Clock;
  readonly #wake: (key: Key) => void;
  /** Began to wait, by key; a place in the queue survives passes, not restarts. */
  readonly #since = new Map<Key, number>();
  /** Started here, until the cache shows it. */
  readonly #started = new Map<Key, string>();
  readonly #lastStart = new Map<string, number>();

  constructor(skills: Store<Skill>, limits: BuildSettings['limits'], clock: Clock, wake: (key: Key) => void) {
    this.#skills = skills;
    this.#limits = limits;
    this.#clock = clock;
    this.#wake = wake;
  }

  /** Skills that wait for a slot. */
  get waiting(): number {
    return this.#since.size;
  }

  /**
   * A pass over the Skill begins to act. Its last write is in the cache by now, so a start that the status does not show never got there:
   * the Skill asks again, and must not stand in its own way. `waits`: it has something to build.
   */
  begin(skill: Skill, waits: boolean): void {
    this.#started.delete(keyOf(skill));
    if (!waits) this.yieldTurn(skill);
  }

  /** Asks for a slot; a yes takes it until the status shows the build. */
  ask(skill: Skill): Turn {
    const key = keyOf(skill);
    const now = this.#clock.monotonic();
    if (!this.#since.has(key)) this.#since.set(key, now);
    const plan = this.#plan();
    if (plan.start.includes(key)) {
      const namespace = skill.metadata.namespace ?? '';
      this.#started.set(key, namespace);
      this.#since.delete(key);
      this.#lastStart.set(namespace, now);
      return { start: true };
    }
    return { start: false, message: plan.waiting.get(key)?.message ?? 'waits for a build slot; it starts by itself' };
  }

  /** The Skill cannot use its turn now: it goes to the end of the line, so that it holds nobody up. */
  yieldTurn(skill: Skill): void {
    if (this.#since.delete(keyOf(skill))) this.#wakeNext();
  }

  /** The Skill's status changed or it is gone: a slot may be free, and the next ones are woken. */
  settle(skill: Skill, gone: boolean): void {
    const key = keyOf(skill);
    // Other changes may come while a start is under way: only what shows it takes its note away.
    if (gone || isBuilding(skill)) {
      this.#since.delete(key);
      this.#started.delete(key);
    }
    // The start shows now: nobody else's turn has come by that.
    if (!gone && isBuilding(skill)) return;
    this.#wakeNext();
  }

  /** The start failed before there was a Job. */
  release(skill: Skill): void {
    this.#started.delete(keyOf(skill));
  }

  #wakeNext(): void {
    if (this.#since.size > 0) for (const next of this.#plan().start) this.#wake(next);
  }

  #plan() {
    const running = new Map<Key, string>(this.#started);
    for (const skill of this.#skills.byIndex(BUILDING, 'true'))
      running.set(keyOf(skill), skill.metadata.namespace ?? '');
    return planQueue({
      waiting: [...this.#since].map(([key, since]) => ({ key, namespace: key.slice(0, key.indexOf('/')), since })),
      running: [...running].map(([key, namespace]) => ({ key, namespace })),
      lastStart: this.#lastStart,
      limits: this.#limits,
    });
  }
}

/** Name of the index of Skills with a Job under way; its only value is `true`. */
export const BUILDING = 'building';

/** A Job of this Skill runs. */
export const isBuilding = (skill: Skill): boolean =>
  skill.status?.candidate?.phase === 'Building' && Boolean(skill.status.candidate.jobName);
