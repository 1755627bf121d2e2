/** One call to something outside, as metrics and traces name it: never an object, an address or content. */
export interface Operation {
  system: 'git' | 'store' | 'engine';
  /** The verb: `fetch`, `put`, `allocate`. */
  name: string;
  /** Which of several: the engine. */
  target?: string;
}

/** Runs `fn` and takes note of how it went; settles as `fn` does. */
export type Observe = <T>(operation: Operation, fn: () => Promise<T>) => Promise<T>;

/** Takes note of nothing, for callers without metrics. */
export const unobserved: Observe = (_operation, fn) => fn();
