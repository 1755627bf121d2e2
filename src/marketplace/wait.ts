/**
 * Waits for shared work under one caller's signal: an abort ends the waiting and leaves the work alone.
 * Rejects with the work's error or the signal's reason.
 */
export async function waitFor<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  // The caller may be gone before it listens; an end that nobody hears would end the process.
  work.catch(() => undefined);
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
