import type { Key } from '../kube/types.ts';
import type { Thing } from '../store/sweep.ts';

/** What heal found out about the world and the next passes have to know. Kept in memory: after a start heal finds it out again. */
export class Health {
  /** Packages found missing or damaged, and those found whole again. */
  readonly #packages = new Map<Thing, 'lost' | 'whole'>();
  /** Skills whose next pass verifies the stored bytes. */
  readonly #verify = new Set<Key>();
  /** Skills whose served template the engine lost → its id. */
  readonly #templates = new Map<Key, string>();
  /** Platform templates, as `<engine>/<id or alias>` → whether the engine knows them. */
  readonly #platform = new Map<string, boolean>();

  /** A listing found exactly these packages missing; what was known before counts no more. */
  setLost(packages: Iterable<Thing>): void {
    this.#packages.clear();
    for (const thing of packages) this.#packages.set(thing, 'lost');
  }

  /** A worker read the package, or stored it. */
  learn(thing: Thing, state: 'lost' | 'whole'): void {
    this.#packages.set(thing, state);
  }

  /** undefined: nothing is known. */
  packageState(thing: Thing): 'lost' | 'whole' | undefined {
    return this.#packages.get(thing);
  }

  /** The next pass of the Skill verifies what is stored, until one ends well. */
  requestVerify(key: Key): void {
    this.#verify.add(key);
  }

  shouldVerify(key: Key): boolean {
    return this.#verify.has(key);
  }

  verified(key: Key): void {
    this.#verify.delete(key);
  }

  templateLost(key: Key, templateID: string): void {
    this.#templates.set(key, templateID);
  }

  lostTemplate(key: Key): string | undefined {
    return this.#templates.get(key);
  }

  templateHandled(key: Key): void {
    this.#templates.delete(key);
  }

  /** The Skill is gone. */
  forget(key: Key): void {
    this.#verify.delete(key);
    this.#templates.delete(key);
  }

  /** Takes an engine's word on a platform template; true when it is another than before. */
  setPlatform(template: string, known: boolean): boolean {
    const changed = this.#platform.get(template) !== known;
    this.#platform.set(template, known);
    return changed;
  }

  /** undefined: the engine has not been asked, or none is configured. */
  platform(template: string): boolean | undefined {
    return this.#platform.get(template);
  }
}
