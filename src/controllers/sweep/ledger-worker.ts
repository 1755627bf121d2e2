import { SKILLS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf, PolicyError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Lister } from '../../kube/pages.ts';
import type { Key } from '../../kube/types.ts';
import type { Ledger, LedgerEntry } from '../byo/ledger.ts';
import type { Leftovers } from '../byo/leftovers.ts';
import type { Removals } from '../byo/removals.ts';
import { type Pins, skillThing } from '../pins.ts';
import { liveReferences, templateClaim } from './references.ts';

/** What working off the ledger needs. */
export interface LedgerWorkerDeps {
  api: Lister;
  ledger: Ledger;
  removals: Pick<Removals, 'remove'>;
  leftovers: Pick<Leftovers, 'remove'>;
  pins: Pins;
  /** Lets a Skill go on that waited for an entry. */
  wake: (key: Key) => void;
  clock: Clock;
  logger: Logger;
  metrics: Pick<Metrics, 'upkeep'>;
}

const FIRST_MS = 60_000;
const MAX_MS = 6 * 60 * 60_000;

/** Wait after the nth failure in a row, milliseconds. What will never work is still tried: a person may have put it right. */
export const ledgerWaitMs = (failures: number): number => Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(failures, 10));

/**
 * Works off the ledger: removes template and image of each entry, after no Skill's status names them any more and engine and repository
 * proved that they were made for the entry's Skill. Done: the entry goes. Failed: it stays and is tried again, ever later.
 */
export class LedgerWorker {
  readonly #deps: LedgerWorkerDeps;
  /** By ConfigMap: tries that failed in a row, and the monotonic time of the next. */
  readonly #tries = new Map<string, { failures: number; at: number }>();

  constructor(deps: LedgerWorkerDeps) {
    this.#deps = deps;
  }

  /** One try of every entry that is due; returns milliseconds until the next is, undefined without entries. */
  async run(signal: AbortSignal): Promise<number | undefined> {
    const { ledger, clock } = this.#deps;
    for (const name of this.#tries.keys()) if (!ledger.entries().has(name)) this.#tries.delete(name);
    for (const [name, entry] of [...ledger.entries()]) {
      if (this.#dueAt(name) <= clock.monotonic()) await this.#try(name, entry, signal);
    }
    const waits = [...ledger.entries().keys()].map((name) => this.#dueAt(name) - clock.monotonic());
    return waits.length > 0 ? Math.max(0, Math.min(...waits)) : undefined;
  }

  #dueAt(name: string): number {
    return this.#tries.get(name)?.at ?? Number.NEGATIVE_INFINITY;
  }

  async #try(name: string, entry: LedgerEntry, signal: AbortSignal): Promise<void> {
    const { ledger, pins, wake, clock, logger, metrics } = this.#deps;
    const { namespace, skill } = entry;
    // A Skill of that name may live again; no pass of it runs while its old things go.
    using claim = pins.claim(skillThing(namespace, skill));
    try {
      if (!claim) throw new PolicyError('Retry', 'Conflict', `Skill ${namespace}/${skill} is being worked on`);
      await this.#remove(entry, signal);
      await ledger.remove(entry, signal);
      this.#tries.delete(name);
      metrics.upkeep('ledger_removed', 1);
      wake(`${namespace}/${skill}`);
    } catch (error) {
      if (signal.aborted) throw error;
      const failures = (this.#tries.get(name)?.failures ?? -1) + (claim ? 1 : 0);
      const wait = ledgerWaitMs(Math.max(0, failures));
      this.#tries.set(name, { failures: Math.max(0, failures), at: clock.monotonic() + wait });
      if (claim) metrics.upkeep('ledger_failed', 1);
      logger.warn({ entry: name, namespace, skill, againMs: wait }, `not removed yet: ${messageOf(error)}`);
    }
  }

  /** What a status names by now belongs to that Skill again and is left to it. */
  async #remove(entry: LedgerEntry, signal: AbortSignal): Promise<void> {
    if (entry.leftovers) return this.#clear(entry, signal);
    const { claims } = await liveReferences(this.#deps.api, signal);
    const { engine, templateID, image, ...rest } = entry;
    const removesTemplate = templateID !== undefined && !claims.has(templateClaim(engine, templateID));
    const keepImage = image === undefined || claims.has(image);
    if (!removesTemplate && keepImage) return;
    const left = { ...rest, engine, templateID: removesTemplate ? templateID : undefined, image };
    await this.#deps.removals.remove(entry, left, signal, { keepImage });
  }

  /** A Skill of that name has the repositories again, and clears them when it goes. */
  async #clear(entry: LedgerEntry, signal: AbortSignal): Promise<void> {
    const { namespace, skill } = entry;
    const scope = { namespace, fieldSelector: `metadata.name=${skill}` };
    const { items } = await this.#deps.api.listPage<Skill>(SKILLS, scope, { limit: 1 }, signal);
    if (items.length === 0) await this.#deps.leftovers.remove(entry, signal);
  }
}
