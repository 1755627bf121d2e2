import type { Skill } from '../../api/skill.ts';
import { type Clock, rfc3339 } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { type Key, keyOf, type Store } from '../../kube/types.ts';
import { tierOf } from '../../lifecycle/slots.ts';
import type { KeySpace } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/port.ts';
import { type ExpectedPackage, isStored, isSuspicious, packageThing, type Thing } from '../../store/sweep.ts';
import type { Health } from '../health.ts';
import { readInventory } from './inventory.ts';
import { versionsOf } from './references.ts';
import type { OperatorState } from './state.ts';

/** What healing the store works with. */
export interface StoreHealDeps {
  skills: Store<Skill>;
  store: ObjectStore;
  space: KeySpace;
  health: Health;
  state: OperatorState;
  wake: (key: Key) => void;
  clock: Clock;
  logger: Logger;
  metrics: Pick<Metrics, 'upkeep'>;
}

/** A package that statuses name, and whose they are. */
type Expected = ExpectedPackage & { keys: Key[] };

/** Every package that the statuses of the cache name. */
export function expectedPackages(skills: readonly Skill[]): Map<Thing, Expected> {
  const expected = new Map<Thing, Expected>();
  for (const skill of skills) {
    const { namespace = '' } = skill.metadata;
    for (const { digest, runtime } of versionsOf(skill)) {
      const thing = packageThing(namespace, digest);
      const known = expected.get(thing) ?? { namespace, digest, hasDockerfile: tierOf(runtime) === 2, keys: [] };
      known.keys.push(keyOf(skill));
      expected.set(thing, known);
    }
  }
  return expected;
}

/** A Skill that says that its package is lost. */
const saysLost = ({ status }: Skill): boolean =>
  status?.conditions?.some(({ type, reason }) => type === 'Serving' && reason === 'PackageLost') ?? false;

/**
 * Compares the bucket with the statuses by one paged list and lets those Skills verify their package whose package is not there: the
 * content is then stored again from Git (I5). Writes nothing itself. So many missing at once that it looks like the wrong bucket:
 * StoreSuspect, and nobody is woken until a person allows it.
 */
export class StoreHeal {
  readonly #deps: StoreHealDeps;

  constructor(deps: StoreHealDeps) {
    this.#deps = deps;
  }

  /** One comparison; true: blocked. */
  async run(signal: AbortSignal): Promise<boolean> {
    const { skills, store, space, health, metrics } = this.#deps;
    // First the statuses, then the list: what they name was stored before.
    const expected = expectedPackages(skills.list());
    if (expected.size === 0) return this.#judge([], 0, signal);
    const inventory = await readInventory(store, space, signal);
    // What was dropped from a status meanwhile is missed by nobody.
    const still = expectedPackages(skills.list());
    const missing = [...expected].filter(([thing, one]) => still.has(thing) && !isStored(inventory, one));
    health.setLost(missing.map(([thing]) => thing));
    if (missing.length > 0) metrics.upkeep('package_missing', missing.length);
    const blocked = await this.#judge(missing, expected.size, signal);
    if (!blocked) this.#wake(missing.flatMap(([, { keys }]) => keys));
    return blocked;
  }

  async #judge(missing: [Thing, Expected][], total: number, signal: AbortSignal): Promise<boolean> {
    const { state, clock } = this.#deps;
    if (isSuspicious(missing.length, total) && (await state.allowed('StoreSuspect', signal)) === undefined) {
      const message = `${missing.length} of ${total} packages that Skills name are not in the bucket, such as ${missing[0]?.[0]}; check endpoint, bucket, prefix and installation id, or restore the bucket`;
      await state.raise('StoreSuspect', message, rfc3339(clock.now()), signal);
      return true;
    }
    await state.clear('StoreSuspect', signal);
    return false;
  }

  /** Those that miss something, and those that say so although nothing is missing any more. */
  #wake(keys: readonly Key[]): void {
    const { skills, health, wake, logger } = this.#deps;
    const lost = new Set(keys);
    for (const skill of skills.list()) if (saysLost(skill)) lost.add(keyOf(skill));
    for (const key of lost) {
      if (skills.get(key)?.spec.suspend) continue;
      health.requestVerify(key);
      wake(key);
    }
    if (lost.size > 0)
      logger.info({ skills: lost.size }, 'packages are not in the bucket; they are stored again from Git');
  }
}
