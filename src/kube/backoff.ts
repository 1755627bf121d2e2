/** An exponential delay: `baseMs`, doubled per attempt, never above `maxMs`. */
export interface Backoff {
  baseMs: number;
  maxMs: number;
}

const doubled = ({ baseMs, maxMs }: Backoff, attempt: number): number =>
  Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30));

/**
 * Full jitter: uniform between half the base and the doubled delay, so that keys that failed together spread out.
 * `attempt` counts from 0, `random` is uniform in [0, 1). Milliseconds.
 */
export function fullJitter(backoff: Backoff, attempt: number, random: number): number {
  const floor = backoff.baseMs / 2;
  return floor + (doubled(backoff, attempt) - floor) * random;
}

/** Jitter upwards only: between the doubled delay and half more, so that the rate never exceeds the nominal one. */
export function jitterUp(backoff: Backoff, attempt: number, random: number): number {
  return Math.min(backoff.maxMs, doubled(backoff, attempt) * (1 + random / 2));
}
