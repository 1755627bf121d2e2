import type { Candidate } from '../api/skill.ts';
import { queuedBecause } from './queued.ts';
import { type Context, needsFinalizer, ownsExternal, type Slots, tierOf, type Work } from './slots.ts';

const isDue = (candidate: Candidate, ctx: Context): boolean =>
  candidate.retryAt === undefined || Date.parse(candidate.retryAt) <= Date.parse(ctx.now);

function startsBuild(slots: Slots, ctx: Context): Work[] {
  const { candidate } = slots;
  if (!candidate || tierOf(candidate.runtime) !== 2) return [];
  const waits = candidate.phase === 'Queued' || (candidate.phase === 'Building' && candidate.jobName === undefined);
  if (!waits || !isDue(candidate, ctx) || queuedBecause(candidate, slots, ctx)) return [];
  const start: Work = { type: 'StartBuild', digest: candidate.digest, attempt: (candidate.attempt ?? 0) + 1 };
  return ctx.hasFinalizer ? [start] : [{ type: 'AddFinalizer' }, start];
}

/**
 * What the slots ask for, in the order in which it is done; asking again after a crash is harmless.
 * Nothing is started while suspended or deleted; removal goes on in both.
 */
export function workOf(slots: Slots, ctx: Context): Work[] {
  const work: Work[] = [];
  const { candidate } = slots;
  if (!ctx.suspended && !ctx.deleting) {
    work.push(...startsBuild(slots, ctx));
    if (candidate?.phase === 'Registering' && candidate.image !== undefined && isDue(candidate, ctx))
      work.push({ type: 'Register', digest: candidate.digest, image: candidate.image });
  }
  for (const entry of slots.retired)
    if (entry.state === 'Deleting' && ownsExternal(entry)) work.push({ type: 'DeleteExternal', entry });
  const starts = work.some((item) => item.type === 'StartBuild');
  if (ctx.hasFinalizer && !starts && !needsFinalizer(slots)) work.push({ type: 'RemoveFinalizer' });
  return work;
}
