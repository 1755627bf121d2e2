import { setTimeout as delay } from 'node:timers/promises';

interface EventuallyOptions {
  /** Milliseconds after which it gives up; default 20 s. */
  timeoutMs?: number;
  /** What is waited for, for the message; default: "the condition". */
  what?: string;
  /** Milliseconds between two looks; default 25. */
  intervalMs?: number;
}

/**
 * Calls `fn` until it neither throws nor returns false, null or undefined, and resolves with what it returned.
 * Rejects after the deadline with the last error or value, so the report shows what stood in the way.
 */
export async function eventually<T>(
  fn: () => T | Promise<T>,
  options: EventuallyOptions = {},
): Promise<Exclude<T, false | null | undefined>> {
  const { timeoutMs = 20_000, what = 'the condition', intervalMs = 25 } = options;
  const deadline = performance.now() + timeoutMs;
  let last: unknown;
  do {
    try {
      const value = await fn();
      if (value !== false && value !== null && value !== undefined)
        return value as Exclude<T, false | null | undefined>;
      last = `it is ${value}`;
    } catch (error) {
      last = error;
    }
    await delay(intervalMs);
  } while (performance.now() < deadline);
  const why = last instanceof Error ? last.message : String(last);
  throw new Error(`${what} did not come about within ${timeoutMs} ms: ${why}`, { cause: last });
}
