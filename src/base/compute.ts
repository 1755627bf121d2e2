/** The heavy pure functions, by name, that may run in a worker; see src/worker.ts. */
export interface Compute {
  /**
   * Runs the named pure function on structured-cloneable input.
   * `weight` is the input's size in bytes and `items` its number of files: small work runs in this thread.
   */
  run<I, O>(task: string, input: I, cost: { weight: number; items: number }, signal: AbortSignal): Promise<O>;
}
