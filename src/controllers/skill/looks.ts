import { ANNOTATIONS } from '../../api/labels.ts';
import type { Skill } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import { type Key, keyOf } from '../../kube/types.ts';
import type { Resolved } from '../../marketplace/port.ts';

interface Look {
  resolved: Resolved;
  at: number;
  /** What the look was for: another spec or a new request needs another one. */
  cause: string;
}

const causeOf = ({ metadata }: Skill): string =>
  `${metadata.uid} ${metadata.generation} ${metadata.annotations?.[ANNOTATIONS.requestedAt] ?? ''}`;

/**
 * What the remotes of Skills with their own source said last. It counts for an interval, so that a pass for another reason (a build
 * moved, a name came free) does not ask the remote again. A failed pass forgets it.
 */
export class Looks {
  readonly #clock: Clock;
  readonly #looks = new Map<Key, Look>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The last answer while it counts, and how old it is in milliseconds. */
  last(skill: Skill, intervalMs: number): { resolved: Resolved; ageMs: number } | undefined {
    const look = this.#looks.get(keyOf(skill));
    if (!look || look.cause !== causeOf(skill)) return undefined;
    const ageMs = this.#clock.monotonic() - look.at;
    return ageMs < intervalMs ? { resolved: look.resolved, ageMs } : undefined;
  }

  learn(skill: Skill, resolved: Resolved): void {
    this.#looks.set(keyOf(skill), { resolved, at: this.#clock.monotonic(), cause: causeOf(skill) });
  }

  forget(key: Key): void {
    this.#looks.delete(key);
  }
}
