import { Reflector, type ReflectorOptions } from './reflector.ts';
import { type Key, type KubeObject, splitKey } from './types.ts';

/** Which objects of a resource are watched. */
export interface WatchScope {
  /** Absent: those of all namespaces, over one stream. */
  namespaces?: readonly string[] | undefined;
  labelSelector?: string | undefined;
}

/** Keeps one cache equal to all that a scope covers: one reflector, or one for each of its namespaces. */
export class Watch<T extends KubeObject> {
  readonly #reflectors: ReadonlyMap<string, Reflector<T>>;

  constructor(options: Omit<ReflectorOptions<T>, 'scope'>, { namespaces, labelSelector }: WatchScope) {
    const selector = labelSelector === undefined ? {} : { labelSelector };
    this.#reflectors = namespaces
      ? new Map(
          namespaces.map((namespace) => [namespace, new Reflector({ ...options, scope: { namespace, ...selector } })]),
        )
      : new Map([['', new Reflector({ ...options, scope: selector })]]);
  }

  /** False when one of the streams has been silent for two whole watches. */
  get alive(): boolean {
    return this.#all.every((reflector) => reflector.alive);
  }

  /** Milliseconds since the most silent stream said anything. */
  get lastEventAgeMs(): number {
    return Math.max(...this.#all.map((reflector) => reflector.lastEventAgeMs));
  }

  /** Runs until `signal` aborts, then resolves. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#all.map((reflector) => reflector.run(signal)));
  }

  /** Resolves when every first list is in the cache; rejects with the signal's reason. */
  async whenSynced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#all.map((reflector) => reflector.whenSynced(signal)));
  }

  /** As `Reflector.refresh`; a key of a namespace that is not watched is none of ours. */
  async refresh(key: Key, signal: AbortSignal): Promise<void> {
    const reflector = this.#reflectors.get('') ?? this.#reflectors.get(splitKey(key).namespace);
    await reflector?.refresh(key, signal);
  }

  get #all(): Reflector<T>[] {
    return [...this.#reflectors.values()];
  }
}
