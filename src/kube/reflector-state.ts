import { type Backoff, jitterUp } from './backoff.ts';

/** kube-rs' figures; with `jitterUp` a server that fails for ever is asked ≤ 1/s. */
const BACKOFF: Backoff = { baseMs: 800, maxMs: 30_000 };
/** A spell this long without a failure starts the back-off from the bottom again. */
const HEALTHY_MS = 120_000;
/** A watch that the server closes cleanly sooner than this counts as a failure: reconnecting at once would be a storm. */
const SHORT_WATCH_MS = 5_000;
/** After so many failed watches without one frame the version itself is suspect, and the list is taken anew. */
const RELIST_AFTER = 5;

/** What the driver does next, `waitMs` from now. */
export type ReflectorState = {
  waitMs: number;
  /** Failures since the last healthy spell: the exponent of the back-off. */
  failures: number;
  /** Failed watches in a row that brought no frame. */
  barren: number;
} & ({ phase: 'list' } | { phase: 'watch'; resourceVersion: string });

/** What happened to the driver's last action. `livedMs` is how long the watch was open, `frames` how many it brought. */
export type ReflectorInput =
  | { type: 'listed'; resourceVersion: string }
  | { type: 'list-failed'; retryAfterMs?: number | undefined }
  | { type: 'watch-closed'; resourceVersion: string; livedMs: number; frames: number }
  | {
      type: 'watch-failed';
      resourceVersion: string;
      livedMs: number;
      frames: number;
      /** HTTP status; 0 for a broken connection or body. */
      code: number;
      retryAfterMs?: number | undefined;
    };

/** The state of a reflector that has seen nothing. */
export const START: ReflectorState = { phase: 'list', waitMs: 0, failures: 0, barren: 0 };

/**
 * The transition of the reflector: pure, total, and without an end state, since only an abort ends a reflector.
 * `random` is uniform in [0, 1).
 */
export function step(state: ReflectorState, input: ReflectorInput, random: number): ReflectorState {
  switch (input.type) {
    case 'listed':
      return { ...state, phase: 'watch', resourceVersion: input.resourceVersion, waitMs: 0, barren: 0 };
    case 'list-failed':
      return { phase: 'list', ...failure(state.failures, input.retryAfterMs, random), barren: 0 };
    case 'watch-closed':
      return watchEnded(state, input, input.livedMs < SHORT_WATCH_MS, random);
    case 'watch-failed':
      return watchEnded(state, input, true, random);
  }
}

function watchEnded(
  state: ReflectorState,
  input: Extract<ReflectorInput, { livedMs: number }>,
  failed: boolean,
  random: number,
): ReflectorState {
  const failures = input.livedMs >= HEALTHY_MS ? 0 : state.failures;
  const next = { phase: 'watch', resourceVersion: input.resourceVersion } as const;
  if (!failed) return { ...next, waitMs: 0, failures, barren: 0 };
  const code = 'code' in input ? input.code : 200;
  const waiting = failure(failures, 'retryAfterMs' in input ? input.retryAfterMs : undefined, random);
  const barren = input.frames > 0 ? 0 : state.barren + 1;
  if (mustRelist(code) || barren >= RELIST_AFTER) return { phase: 'list', ...waiting, barren: 0 };
  return { ...next, ...waiting, barren };
}

/** 410: the version is gone. Other refusals of the request itself do not heal by sending it again either. */
const mustRelist = (code: number): boolean => code >= 400 && code < 500 && code !== 401 && code !== 429;

function failure(
  failures: number,
  retryAfterMs: number | undefined,
  random: number,
): { waitMs: number; failures: number } {
  return { waitMs: Math.max(jitterUp(BACKOFF, failures, random), retryAfterMs ?? 0), failures: failures + 1 };
}
