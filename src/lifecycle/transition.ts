import { isDeepStrictEqual } from 'node:util';
import type { Candidate, Version } from '../api/skill.ts';
import { type Draft, discard, draftOf, dropCandidate, held, serve, serveOrHold, trim } from './draft.ts';
import { explainQueued } from './queued.ts';
import { type Context, type EntryId, type Event, type Slots, type Step, tierOf, versionOf } from './slots.ts';

type Handler<T extends Event['type']> = (draft: Draft, event: Extract<Event, { type: T }>, ctx: Context) => void;

const queued = (version: Version): Candidate => ({ ...versionOf(version), phase: 'Queued' });

/** The same content to be built anew: no id of the old build goes along. */
function rebuilt(version: Version): Candidate {
  const { templateID: _template, image: _image, ...rest } = versionOf(version);
  return queued(rest);
}

const isReady = (version: Version): boolean =>
  tierOf(version.runtime) === 0 || (tierOf(version.runtime) === 1 && version.templateID !== undefined);

const newDigest: Handler<'NewDigest'> = (draft, { version }, ctx) => {
  const { candidate } = draft;
  if (candidate?.digest === version.digest) {
    // A platform template that was missing from the map may be there now; all else is no event.
    if (candidate.phase === 'Queued' && isReady(version)) serveOrHold(draft, version, ctx);
    return;
  }
  dropCandidate(draft);
  if (draft.served?.digest === version.digest) return;
  const kept = draft.retired.find((entry) => entry.digest === version.digest && entry.state === 'Kept');
  if (kept) {
    draft.retired.splice(draft.retired.indexOf(kept), 1);
    serveOrHold(draft, isReady(version) ? version : kept, ctx);
  } else if (isReady(version)) serveOrHold(draft, version, ctx);
  else draft.candidate = queued(version);
};

const buildStarted: Handler<'BuildStarted'> = (draft, { jobName, buildID }, ctx) => {
  const { candidate } = draft;
  const waits = candidate?.phase === 'Queued' || (candidate?.phase === 'Building' && candidate.jobName === undefined);
  if (!candidate || !waits) return;
  draft.candidate = {
    ...versionOf(candidate),
    phase: 'Building',
    attempt: (candidate.attempt ?? 0) + 1,
    jobName,
    buildID,
    startedAt: ctx.now,
  };
};

const buildDone: Handler<'BuildDone'> = (draft, { image }, ctx) => {
  const { candidate } = draft;
  if (candidate?.phase !== 'Building') return;
  const { attempt, buildID } = candidate;
  const progress = { ...(attempt === undefined ? {} : { attempt }), ...(buildID === undefined ? {} : { buildID }) };
  // Bit for bit the image of an entry that is being removed: the removal has to end before the name is used again.
  const doomed = draft.retired.some((entry) => entry.state === 'Deleting' && entry.image === image);
  draft.candidate = doomed
    ? { ...queued(candidate), ...progress }
    : { ...versionOf(candidate), image, phase: 'Registering', ...progress, startedAt: ctx.now };
};

const templateCreated: Handler<'TemplateCreated'> = (draft, { templateID, buildID, settings }, ctx) => {
  const { candidate } = draft;
  if (candidate?.phase !== 'Registering') return;
  const { retryAt: _due, reason: _reason, message: _message, buildID: _old, ...rest } = candidate;
  const anew = candidate.templateID !== templateID || candidate.buildID !== buildID;
  draft.candidate = {
    ...rest,
    templateID,
    ...(buildID === undefined ? {} : { buildID }),
    ...(settings === undefined ? {} : { settings }),
    ...(anew ? { startedAt: ctx.now } : {}),
  };
  // An id that the engine gave before is still there under its own name.
  if (candidate.templateID !== undefined && candidate.templateID !== templateID) discard(draft, candidate);
};

const registered: Handler<'Registered'> = (draft, { templateID, duplicates = [] }, ctx) => {
  const { candidate } = draft;
  if (candidate?.phase !== 'Registering') return;
  serveOrHold(draft, { ...versionOf(candidate), templateID }, ctx);
  for (const duplicate of duplicates) discard(draft, { ...versionOf(candidate), templateID: duplicate });
};

const transientFailure: Handler<'TransientFailure'> = (draft, event) => {
  const { candidate } = draft;
  if (candidate?.phase !== 'Building' && candidate?.phase !== 'Registering') return;
  const { retryAt, reason, message, logTail } = event;
  const { jobName: _ended, ...rest } = candidate;
  draft.candidate = { ...rest, retryAt, reason, message, ...(logTail === undefined ? {} : { logTail }) };
};

const terminalFailure: Handler<'TerminalFailure'> = (draft, { reason, message, logTail }) => {
  const { candidate } = draft;
  if (candidate?.phase !== 'Building' && candidate?.phase !== 'Registering') return;
  const { attempt } = candidate;
  draft.candidate = {
    ...rebuilt(candidate),
    phase: 'Failed',
    ...(attempt === undefined ? {} : { attempt }),
    reason,
    message,
    ...(logTail === undefined ? {} : { logTail }),
  };
  discard(draft, candidate);
};

const rebuild: Handler<'Rebuild'> = (draft) => {
  const target = draft.candidate ?? draft.served;
  if (!target || tierOf(target.runtime) !== 2) return;
  dropCandidate(draft);
  draft.candidate = rebuilt(target);
};

const suspended: Handler<'Suspended'> = (draft) => {
  const { candidate } = draft;
  if (candidate?.phase !== 'Building') return;
  if (candidate.jobName !== undefined) draft.actions.push({ type: 'CancelJob', jobName: candidate.jobName });
  // The count goes on, so that the next Job has a name of its own.
  draft.candidate = {
    ...queued(candidate),
    ...(candidate.attempt === undefined ? {} : { attempt: candidate.attempt }),
  };
};

const nameTaken: Handler<'NameTaken'> = (draft, _event, ctx) => {
  const { served, candidate } = draft;
  if (ctx.nameHolder === undefined) return;
  if (served) {
    dropCandidate(draft);
    draft.served = undefined;
    draft.candidate = held(served, ctx.nameHolder);
  } else if (candidate?.phase === 'Held') draft.candidate = held(candidate, ctx.nameHolder);
};

const nameFree: Handler<'NameFree'> = (draft, _event, ctx) => {
  const { candidate } = draft;
  if (candidate?.phase !== 'Held' || ctx.nameHolder !== undefined) return;
  draft.candidate = undefined;
  serve(draft, candidate, ctx);
};

const templateLost: Handler<'TemplateLost'> = (draft, { templateID }, ctx) => {
  const { served, candidate } = draft;
  if (!served || served.templateID !== templateID || served.image === undefined) return;
  // A newer version on its way replaces the broken one anyway.
  if (candidate && candidate.phase !== 'Failed') return;
  const { templateID: _lost, ...rest } = versionOf(served);
  draft.candidate = { ...rest, phase: 'Registering', startedAt: ctx.now };
};

const tier1MapChanged: Handler<'Tier1MapChanged'> = (draft, { templateIDs }, ctx) => {
  const rewrite = <T extends Version>(version: T): T => {
    const templateID = tierOf(version.runtime) === 1 ? templateIDs[version.runtime] : undefined;
    return templateID === undefined ? version : { ...version, templateID };
  };
  const from = draft.served;
  if (from) draft.served = rewrite(from);
  if (from && draft.served && from.templateID !== draft.served.templateID)
    draft.actions.push({ type: 'VersionServed', from, to: draft.served });
  draft.retired = draft.retired.map(rewrite);
  if (!draft.candidate) return;
  draft.candidate = rewrite(draft.candidate);
  if (draft.candidate.phase === 'Queued' && isReady(draft.candidate)) serveOrHold(draft, draft.candidate, ctx);
};

const findDeleting = (draft: Draft, id: EntryId): number =>
  draft.retired.findIndex(
    (entry) =>
      entry.state === 'Deleting' &&
      entry.digest === id.digest &&
      entry.templateID === id.templateID &&
      entry.image === id.image,
  );

function release(draft: Draft, id: EntryId, why?: 'InUse' | 'Failed'): void {
  const at = findDeleting(draft, id);
  if (at < 0) return;
  const [entry] = draft.retired.splice(at, 1);
  if (entry && why) draft.actions.push({ type: 'LedgerEntry', entry, why });
}

const deleted: Handler<'Deleted'> = (draft, _event, ctx) => {
  const { served, candidate } = draft;
  if (candidate?.jobName !== undefined) draft.actions.push({ type: 'CancelJob', jobName: candidate.jobName });
  const kept = draft.retired.filter((entry) => entry.state === 'Kept');
  draft.served = undefined;
  draft.candidate = undefined;
  draft.retired = draft.retired.filter((entry) => entry.state === 'Deleting');
  if (ctx.deletionPolicy === 'Orphan') return;
  for (const version of [...kept.reverse(), served, candidate]) if (version) discard(draft, version);
};

const deletionExpired: Handler<'DeletionExpired'> = (draft) => {
  for (const entry of draft.retired.filter((e) => e.state === 'Deleting'))
    draft.actions.push({ type: 'LedgerEntry', entry, why: 'DeletionExpired' });
  draft.retired = draft.retired.filter((entry) => entry.state !== 'Deleting');
};

/** Waits for its build, or has a Job that does not run yet. */
const isBlockable = (candidate: Candidate | undefined): candidate is Candidate =>
  candidate?.phase === 'Queued' || (candidate?.phase === 'Building' && candidate.jobName !== undefined);

const HANDLERS: { [T in Event['type']]: Handler<T> } = {
  NewDigest: newDigest,
  ContentInvalid: (draft) => dropCandidate(draft),
  BuildStarted: buildStarted,
  BuildDone: buildDone,
  TemplateCreated: templateCreated,
  Registered: registered,
  TransientFailure: transientFailure,
  TerminalFailure: terminalFailure,
  Blocked: (draft, { reason, message }) => {
    if (isBlockable(draft.candidate)) draft.candidate = { ...draft.candidate, reason, message };
  },
  Unblocked: (draft) => {
    if (!isBlockable(draft.candidate)) return;
    const { reason: _reason, message: _message, ...rest } = draft.candidate;
    draft.candidate = rest;
  },
  Rebuild: rebuild,
  Suspended: suspended,
  NameTaken: nameTaken,
  NameFree: nameFree,
  TemplateLost: templateLost,
  Tier1MapChanged: tier1MapChanged,
  LimitChanged: (draft, _event, ctx) => trim(draft, ctx.historyLimit),
  RetiredGone: (draft, { entry }) => release(draft, entry),
  RetiredInUse: (draft, { entry, retriesLeft }) => {
    if (!retriesLeft) release(draft, entry, 'InUse');
  },
  RetiredFailed: (draft, { entry }) => release(draft, entry, 'Failed'),
  Deleted: deleted,
  DeletionExpired: deletionExpired,
};

/** Events that still count once the Skill is being deleted. */
const WHILE_DELETING: ReadonlySet<Event['type']> = new Set([
  'Deleted',
  'DeletionExpired',
  'RetiredGone',
  'RetiredInUse',
  'RetiredFailed',
]);

/**
 * The slot table of the design as a function: slots and an event give the next slots and what to do once.
 * Pure and idempotent; an event that does not fit the slots changes nothing. What stands to be done as long as the slots stand: `workOf`.
 */
export function transition(slots: Slots, event: Event, ctx: Context): Step {
  const draft = draftOf(slots);
  if (!ctx.deleting || WHILE_DELETING.has(event.type)) {
    (HANDLERS[event.type] as Handler<Event['type']>)(draft, event as never, ctx);
    draft.candidate = explainQueued(draft.candidate, draft, ctx);
  }
  const { served, candidate, retired, actions } = draft;
  const next: Slots = { served, candidate, retired };
  const changed = !isDeepStrictEqual(next, {
    served: slots.served,
    candidate: slots.candidate,
    retired: slots.retired,
  });
  return { slots: changed ? next : slots, actions, changed };
}
