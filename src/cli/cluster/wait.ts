import type { Clock } from '../../base/clock.ts';
import { stalled } from '../../base/errors.ts';
import { KubeError } from '../../kube/errors.ts';
import type { Io } from '../io.ts';
import { Progress } from '../progress.ts';
import { RESOURCES, type Target } from './objects.ts';
import type { Session } from './session.ts';

const FIRST_LOOK_MS = 200;
const LOOK_MS = 1000;
/** After this time without an answer the operator may not be there at all. */
const SILENT_MS = 20_000;

/** Raised when `--timeout` is up; the message says what was waited for. */
class TimeIsUp extends Error {
  override readonly name = 'TimeIsUp';
}

/** The object as it is now. Rejects when it is gone or another one has its name. */
export async function reread(session: Session, target: Target, signal: AbortSignal): Promise<Target> {
  const { namespace = '', name, uid } = target.object.metadata;
  const resource = RESOURCES[target.kind];
  const object = await session.api.get<Target['object']>(resource, namespace, name, signal);
  if (object?.metadata.uid !== uid) throw stalled('SourceNotFound', `${resource.kind} ${name} was deleted meanwhile`);
  return { kind: target.kind, object } as Target;
}

/** What is still waited for, or the result. */
export type Look<T> = { done: true; value: T } | { done: false; text: string; answered: boolean };

/**
 * Looks again and again until `look` is done; an API server that does not answer for a while is sat out.
 * Rejects with TimeIsUp after `timeoutMs`.
 */
export async function waitFor<T>(
  look: () => Promise<Look<T>>,
  options: { io: Io; clock: Clock; timeoutMs: number; what: string },
  signal: AbortSignal,
): Promise<T> {
  const { io, clock, timeoutMs, what } = options;
  const progress = new Progress(io, clock);
  let pause = FIRST_LOOK_MS;
  try {
    for (;;) {
      const seen = await oneLook(look, signal);
      if (seen.done) return seen.value;
      const left = timeoutMs - progress.elapsedMs;
      const hint = seen.answered ? '' : HINT;
      if (left <= 0)
        throw new TimeIsUp(`${what} did not end within ${Math.round(timeoutMs / 1000)} s: ${seen.text}${hint}`);
      progress.say(progress.elapsedMs > SILENT_MS ? seen.text + hint : seen.text);
      await clock.sleep(Math.min(pause, left), signal);
      pause = Math.min(LOOK_MS, pause * 2);
    }
  } finally {
    progress.end();
  }
}

/** What to try when nobody answers. */
const HINT = '; skillctl doctor tells whether the operator runs';

/** One look; an API server that does not answer is nothing to give up for. */
async function oneLook<T>(look: () => Promise<Look<T>>, signal: AbortSignal): Promise<Look<T>> {
  try {
    return await look();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof KubeError && error.code === 0) return { done: false, text: error.message, answered: true };
    throw error;
  }
}
