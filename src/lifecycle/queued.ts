import type { Candidate } from '../api/skill.ts';
import type { Reason } from '../base/reasons.ts';
import { type Context, type Slots, tierOf } from './slots.ts';

/** Reasons that `explainQueued` alone sets and clears. */
const OWN_REASONS = new Set<string>([
  'BuildNotConfigured',
  'TemplateNotConfigured',
  'RemovalPending',
] satisfies Reason[]);

/** Why a Queued candidate cannot start, where the slots and the settings say so. */
export function queuedBecause(
  candidate: Candidate,
  slots: Pick<Slots, 'retired'>,
  ctx: Context,
): { reason: Reason; message: string } | undefined {
  const { runtime, digest } = candidate;
  if (tierOf(runtime) === 1 && candidate.templateID === undefined)
    return {
      reason: 'TemplateNotConfigured',
      message: `the operator's map of platform templates has no entry for runtime ${runtime}; ask the administrator to add it to the operator's settings`,
    };
  if (tierOf(runtime) < 2) return undefined;
  if (!ctx.buildsConfigured)
    return {
      reason: 'BuildNotConfigured',
      message: `runtime ${runtime} brings its own image and this installation has no image builds configured; use runtime ${runtime}::python or ${runtime}::node without a Dockerfile, or ask the administrator to configure builds`,
    };
  const removing = slots.retired.some((entry) => entry.state === 'Deleting' && entry.digest === digest);
  if (removing || ctx.ledgerDigests?.includes(digest))
    return {
      reason: 'RemovalPending',
      message:
        'an earlier image or template of the same content is still being removed; the build starts when it is gone',
    };
  return undefined;
}

/** The candidate with the reason why it cannot start, where there is one that this room knows; other reasons stay. */
export function explainQueued(
  candidate: Candidate | undefined,
  slots: Pick<Slots, 'retired'>,
  ctx: Context,
): Candidate | undefined {
  if (candidate?.phase !== 'Queued') return candidate;
  const because = queuedBecause(candidate, slots, ctx);
  if (because) return { ...candidate, ...because };
  if (candidate.reason === undefined || !OWN_REASONS.has(candidate.reason)) return candidate;
  const { reason: _reason, message: _message, ...rest } = candidate;
  return rest;
}
