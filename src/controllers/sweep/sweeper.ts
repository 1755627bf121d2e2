import { rfc3339 } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { pinnedImage } from '../../build/names.ts';
import type { Registry } from '../../build/port.ts';
import type { Lister } from '../../kube/pages.ts';
import { clockKey, type KeySpace } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/port.ts';
import { deletionOrder, type Inventory, planSweep, recordOwner, sweepBlock, type Thing } from '../../store/sweep.ts';
import type { ImageOwner } from '../byo/records.ts';
import { type Pins, skillThing } from '../pins.ts';
import { type RecordContent, RecordDigests } from './digests.ts';
import { readInventory } from './inventory.ts';
import { imageOf, isReferenced, liveReferences, type References } from './references.ts';
import type { OperatorState } from './state.ts';

/** What the sweep works with. */
export interface SweeperDeps {
  api: Lister;
  store: ObjectStore;
  space: KeySpace;
  pins: Pins;
  state: OperatorState;
  /** Images; absent: their records are left alone. */
  images?: { registry: Registry; repositoryOf(owner: ImageOwner): string } | undefined;
  /** Images that the ledger still has to remove, by their full name. */
  ledgerImages: () => ReadonlySet<string>;
  graceMs: number;
  logger: Logger;
  metrics: Pick<Metrics, 'upkeep'>;
}

/** Things that are claimed, checked and deleted together: one live list of the Skills serves them all. */
const BATCH = 50;
const MARK = Buffer.from('{}');
const MARK_TYPE = 'application/json';

type Records = ReadonlyMap<Thing, RecordContent>;

/** What a sweep did. */
export interface SweepResult {
  blocked: boolean;
}

/**
 * Deletes what no Skill names (I5): marks it, takes the mark off when it is named again, and deletes it a grace after the mark, by the
 * store's clock. Before each deletion the things are claimed from the workers and the statuses of all Skills are read live.
 * May die at any await: what is half deleted is still marked, and the next sweep goes on.
 */
export class Sweeper {
  readonly #deps: SweeperDeps;
  readonly #digests: RecordDigests;

  constructor(deps: SweeperDeps) {
    this.#deps = deps;
    this.#digests = new RecordDigests(deps.store, deps.space);
  }

  /** One sweep over the whole bucket. */
  async run(signal: AbortSignal): Promise<SweepResult> {
    const { store, space, pins, graceMs } = this.#deps;
    // Whatever a worker touched since the last sweep starts its grace anew, even when it is named by nobody again.
    const touched = pins.takeTouched();
    const inventory = await readInventory(store, space, signal);
    const records = await this.#digests.of(inventory, signal);
    const live = await liveReferences(this.#deps.api, signal);
    const isNamed = this.#rule(live, records, (thing) => touched.has(thing) || pins.isHeld(thing));
    const storeNow = inventory.marks.size > 0 ? await this.#storeNow(signal) : 0;
    const plan = planSweep({ inventory, isNamed, storeNow, graceMs });
    for (const thing of plan.mark) await this.#mark(thing, records, signal);
    for (const thing of plan.lift) await this.#lift(thing, signal);
    const due = await this.#allowed(plan.due, inventory, live.skills, storeNow, signal);
    for (let at = 0; due && at < due.length; at += BATCH) {
      await this.#deleteBatch(due.slice(at, at + BATCH), records, signal);
    }
    return { blocked: due === undefined };
  }

  #rule(live: References, records: Records, extra: (thing: Thing) => boolean): (thing: Thing) => boolean {
    const { images, ledgerImages } = this.#deps;
    const doomed = ledgerImages();
    // An image that one record needs is needed under all its records.
    const needed = new Set<string | undefined>();
    for (const [thing, record] of records) {
      if (record.kept || isReferenced(live, thing, record.digest)) needed.add(imageOf(thing, record.digest));
    }
    return (thing) => {
      const owner = recordOwner(thing);
      if (extra(thing) || !owner) return extra(thing) || isReferenced(live, thing, undefined);
      if (!images) return true;
      const record = records.get(thing);
      if (!record?.digest) return record?.kept === true || isReferenced(live, thing, undefined);
      return (
        needed.has(imageOf(thing, record.digest)) ||
        doomed.has(pinnedImage(images.registry.host, images.repositoryOf(owner), record.digest))
      );
    };
  }

  /** The store's clock: an object written now tells its time. */
  async #storeNow(signal: AbortSignal): Promise<number> {
    const { store, space } = this.#deps;
    const key = clockKey(space);
    await store.put(key, MARK, MARK_TYPE, signal);
    return (await store.head(key, signal))?.lastModified ?? 0;
  }

  /** A mark of a record carries the image's digest: it outlives the record for as long as the image. */
  async #mark(thing: Thing, records: Records, signal: AbortSignal): Promise<void> {
    const { store, space, metrics } = this.#deps;
    const record = records.get(thing);
    const body = record ? Buffer.from(JSON.stringify({ digest: record.digest })) : MARK;
    await store.putIfAbsent(`${space.root}marks/${thing}`, body, MARK_TYPE, signal);
    metrics.upkeep('marked', 1);
  }

  async #lift(thing: Thing, signal: AbortSignal): Promise<void> {
    const { store, space, metrics } = this.#deps;
    await store.delete(`${space.root}marks/${thing}`, signal);
    metrics.upkeep('unmarked', 1);
  }

  /** What of the due things may be deleted now; undefined: a person has to look first. A token allows what was due at its time. */
  async #allowed(
    due: Thing[],
    inventory: Inventory,
    skills: number,
    storeNow: number,
    signal: AbortSignal,
  ): Promise<Thing[] | undefined> {
    const { state, graceMs } = this.#deps;
    const problem = sweepBlock(due, inventory, skills);
    if (problem === undefined) {
      await state.clear('SweepBlocked', signal);
      return due;
    }
    const token = await state.allowed('SweepBlocked', signal);
    if (token === undefined) {
      // Rounded up, so that everything that is due now is due at the time of the token.
      const now = rfc3339(Math.ceil(storeNow / 1000) * 1000);
      await state.raise('SweepBlocked', `${problem}; nothing is deleted until that is allowed`, now, signal);
      return undefined;
    }
    await state.clear('SweepBlocked', signal);
    const until = Date.parse(token) - graceMs;
    return due.filter((thing) => (inventory.marks.get(thing) ?? Number.POSITIVE_INFINITY) <= until);
  }

  async #deleteBatch(batch: readonly Thing[], records: Records, signal: AbortSignal): Promise<void> {
    using claims = new DisposableStack();
    const claimed = this.#claim(batch, claims);
    // From here on no worker can begin to use them: what no status names now will stay unnamed.
    const live = await liveReferences(this.#deps.api, signal);
    const isNamed = this.#rule(live, records, () => false);
    for (const thing of claimed) {
      if (!isNamed(thing)) await this.#delete(thing, records.get(thing)?.digest, signal);
    }
  }

  /** The things that no worker holds; records are held with their Skill. */
  #claim(batch: readonly Thing[], claims: DisposableStack): Thing[] {
    const pinned = new Map<string, boolean>();
    for (const name of batch.map(pinOf)) {
      if (pinned.has(name)) continue;
      const claim = this.#deps.pins.claim(name);
      if (claim) claims.use(claim);
      pinned.set(name, claim !== undefined);
    }
    return batch.filter((thing) => pinned.get(pinOf(thing)));
  }

  async #delete(thing: Thing, digest: string | undefined, signal: AbortSignal): Promise<void> {
    const { store, space, images, metrics, logger } = this.#deps;
    for (const key of deletionOrder(space, thing)) await store.delete(key, signal);
    const owner = recordOwner(thing);
    if (owner && digest && images) {
      try {
        await images.registry.deleteImage(images.repositoryOf(owner), digest, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        // Its mark stays and still knows the image.
        logger.warn(
          { thing, digest },
          `the image could not be deleted; the next sweep tries again: ${messageOf(error)}`,
        );
        return;
      }
    }
    await store.delete(`${space.root}marks/${thing}`, signal);
    metrics.upkeep(owner ? 'image_deleted' : 'package_deleted', 1);
    logger.info({ thing }, 'deleted: no Skill has named it for the grace period');
  }
}

/** What a worker holds while it makes use of the thing. */
function pinOf(thing: Thing): string {
  const owner = recordOwner(thing);
  return owner ? skillThing(owner.namespace, owner.skill) : thing;
}
