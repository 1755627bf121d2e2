/** The reason of a signal that `withDeadline` aborted. */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded';
  readonly ms: number;
  constructor(ms: number) {
    super(`no answer within ${ms} ms`);
    this.ms = ms;
  }
}

/**
 * Runs `fn` under the caller's signal and a deadline of its own.
 * Rejects with `DeadlineExceeded` after `ms`, even when `fn` ignores its signal; never leaves a timer or a listener behind.
 */
export async function withDeadline<T>(
  signal: AbortSignal,
  ms: number,
  fn: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const controller = new AbortController();
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = (reason: unknown) => {
    // First the outcome, then the abort: what `fn` rejects with on abort must not win the race.
    reject(reason);
    controller.abort(reason);
  };
  const onAbort = () => stop(signal.reason);
  const timer = setTimeout(() => stop(new DeadlineExceeded(ms)), ms);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([fn(controller.signal), promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
