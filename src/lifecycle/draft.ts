import type { Candidate, Retired, Version } from '../api/skill.ts';
import { type Action, type Context, ownsExternal, type Slots, versionOf } from './slots.ts';

/** Most retired entries a status may hold; the schema says the same. */
const MAX_RETIRED = 10;

/** Slots under change within one transition, and the actions gathered so far. */
export interface Draft {
  served: Version | undefined;
  candidate: Candidate | undefined;
  retired: Retired[];
  actions: Action[];
}

export const draftOf = (slots: Slots): Draft => ({
  served: slots.served,
  candidate: slots.candidate,
  retired: [...slots.retired],
  actions: [],
});

/** The version without those external ids that another slot holds too: what is shared must not be deleted (or is deleted with the other). */
function withoutShared(draft: Draft, version: Version, self?: Retired): Version {
  const others = [draft.served, draft.candidate, ...draft.retired].filter((v) => v !== undefined && v !== self);
  const { templateID, image, ...rest } = versionOf(version);
  return {
    ...rest,
    ...(templateID !== undefined && !others.some((v) => v?.templateID === templateID) ? { templateID } : {}),
    ...(image !== undefined && !others.some((v) => v?.image === image) ? { image } : {}),
  };
}

/** An eleventh entry sends the oldest Deleting one to the ledger. */
function bound(draft: Draft): void {
  while (draft.retired.length > MAX_RETIRED) {
    const at = draft.retired.findLastIndex((entry) => entry.state === 'Deleting');
    const [entry] = draft.retired.splice(at < 0 ? draft.retired.length - 1 : at, 1);
    if (entry && ownsExternal(entry)) draft.actions.push({ type: 'LedgerEntry', entry, why: 'Overflow' });
  }
}

/** Puts what the version owns outside the cluster into a Deleting entry; nothing owned, nothing written. */
export function discard(draft: Draft, version: Version): void {
  const own = withoutShared(draft, version);
  if (!ownsExternal(own)) return;
  draft.retired.unshift({ ...own, state: 'Deleting' });
  bound(draft);
}

/** Applies the history limit: Kept entries beyond it become Deleting, or vanish when they own nothing. */
export function trim(draft: Draft, limit: number): void {
  let kept = 0;
  for (const entry of [...draft.retired]) {
    if (entry.state !== 'Kept' || ++kept <= limit) continue;
    const own = withoutShared(draft, entry, entry);
    const at = draft.retired.indexOf(entry);
    if (ownsExternal(own)) draft.retired[at] = { ...own, state: 'Deleting' };
    else draft.retired.splice(at, 1);
  }
  bound(draft);
}

/** Empties the candidate slot: its Job is cancelled, its image and template move to a Deleting entry. */
export function dropCandidate(draft: Draft): void {
  const old = draft.candidate;
  if (!old) return;
  draft.candidate = undefined;
  if (old.jobName !== undefined) draft.actions.push({ type: 'CancelJob', jobName: old.jobName });
  discard(draft, old);
}

/** Makes `version` the served one and retires the old one, in the same write. */
export function serve(draft: Draft, version: Version, ctx: Context): void {
  const from = draft.served;
  draft.served = versionOf(version);
  if (from && from.digest !== version.digest) draft.retired.unshift({ ...from, state: 'Kept' });
  else if (from) discard(draft, from);
  trim(draft, ctx.historyLimit);
  draft.actions.push({ type: 'VersionServed', from, to: draft.served });
}

/** Serves a version that is ready, or holds it while another Skill has the name. The candidate slot must be empty or hold that version. */
export function serveOrHold(draft: Draft, version: Version, ctx: Context): void {
  draft.candidate = undefined;
  if (ctx.nameHolder === undefined) serve(draft, version, ctx);
  else draft.candidate = held(version, ctx.nameHolder);
}

/** A ready candidate that waits for its name. */
export const held = (version: Version, holder: string): Candidate => ({
  ...versionOf(version),
  phase: 'Held',
  reason: 'NameConflict',
  message: `Skill ${holder} of this namespace holds the same name; delete that Skill, or rename the directory of this one together with its name field`,
});
