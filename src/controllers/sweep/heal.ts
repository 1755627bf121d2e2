import type { Skill } from '../../api/skill.ts';
import { type Clock, rfc3339 } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { type Key, keyOf, type Store } from '../../kube/types.ts';
import { tierOf } from '../../lifecycle/slots.ts';
import type { KeySpace } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/port.ts';
import {
  type ExpectedPackage,
  type Inventory,
  isStored,
  isSuspicious,
  packageThing,
  type Thing,
} from '../../store/sweep.ts';
import type { Health } from '../health.ts';
import { readInventory } from './inventory.ts';
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
type Expected = ExpectedPackage & {
  /** Skills that serve it or are about to. */
  keys: Key[];
};

/** A Skill that says that the package of its served version is lost: it has been tried. */
const saysLost = ({ status }: Skill): boolean =>
  status?.conditions?.some(({ type, reason }) => type === 'Serving' && reason === 'PackageLost') ?? false;

/** Every package that the statuses of the cache name. What is being removed is missed by nobody. */
export function expectedPackages(skills: readonly Skill[]): Map<Thing, Expected> {
  const expected = new Map<Thing, Expected>();
  for (const skill of skills) {
    const { namespace = '' } = skill.metadata;
    const { served, candidate, retired = [] } = skill.status ?? {};
    const kept = retired.filter(({ state }) => state === 'Kept');
    const tried = saysLost(skill) ? served : undefined;
    for (const version of [served, candidate, ...kept]) {
      if (!version) continue;
      const { digest, runtime } = version;
      const thing = packageThing(namespace, digest);
      const known = expected.get(thing) ?? { namespace, digest, hasDockerfile: tierOf(runtime) === 2, keys: [] };
      // A version that was replaced can only be stored again when Git returns to it; its pass does that.
      if ((version === served || version === candidate) && version !== tried) known.keys.push(keyOf(skill));
      expected.set(thing, known);
    }
  }
  return expected;
}

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
    // Nobody knows yet whether this is the right bucket: until that is clear no pass may take a package for lost.
    health.setLost([]);
    const urgent = missing.filter(([, { keys }]) => keys.length > 0);
    if (urgent.length > 0) metrics.upkeep('package_missing', urgent.length);
    if (await this.#judge(urgent, expected.size, signal)) return true;
    health.setLost(missing.map(([thing]) => thing));
    const back = skills.list().filter((skill) => saysLost(skill) && this.#hasServed(skill, inventory));
    this.#wake([...urgent.flatMap(([, { keys }]) => keys), ...back.map(keyOf)]);
    return false;
  }

  #hasServed({ metadata, status }: Skill, inventory: Inventory): boolean {
    const { namespace = '' } = metadata;
    const { digest = '', runtime = '' } = status?.served ?? {};
    return isStored(inventory, { namespace, digest, hasDockerfile: tierOf(runtime) === 2 });
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

  /** Those that miss something, and those that say so although it is there. */
  #wake(keys: readonly Key[]): void {
    const { skills, health, wake, logger } = this.#deps;
    const awake = [...new Set(keys)].filter((key) => !skills.get(key)?.spec.suspend);
    for (const key of awake) {
      health.requestVerify(key);
      wake(key);
    }
    if (awake.length > 0)
      logger.info({ skills: awake.length }, 'stored packages are verified, and stored again from Git');
  }
}
