import type { Candidate, Retired, Skill, Version } from '../api/skill.ts';

/** The versions of one Skill. `retired` is newest first and holds at most ten. */
export interface Slots {
  served?: Version | undefined;
  candidate?: Candidate | undefined;
  retired: Retired[];
}

/** What the rules need to know besides slots and event. */
export interface Context {
  /** Point in time of the transition, RFC 3339. */
  now: string;
  /** Effective spec.versionHistoryLimit. */
  historyLimit: number;
  /** Effective spec.deletionPolicy. */
  deletionPolicy: 'Delete' | 'Orphan';
  /** Name of the other Skill of the namespace that holds the bare name; absent: the name is free. */
  nameHolder?: string | undefined;
  /** This installation builds images; without it a skill with its own image waits in Queued. */
  buildsConfigured: boolean;
  /** The Skill carries the finalizer. */
  hasFinalizer: boolean;
  /** metadata.deletionTimestamp is set. */
  deleting: boolean;
  /** spec.suspend: nothing is started. */
  suspended: boolean;
  /** Digests whose image or template stands in the ledger of things that could not be deleted. */
  ledgerDigests?: readonly string[] | undefined;
}

/** Names one retired entry: a digest can stand twice, after a rebuild. */
export type EntryId = Pick<Version, 'digest' | 'templateID' | 'image'>;

/** What happened to a Skill. Every event may arrive twice; the second time nothing changes. */
export type Event =
  /** The content is valid and stored. A platform template (Tier 1) already carries its templateID, where the map has one. */
  | { type: 'NewDigest'; version: Version }
  /** The content breaks the protocol. */
  | { type: 'ContentInvalid' }
  | { type: 'BuildStarted'; jobName: string; buildID: string }
  /** The registry confirmed the digest of the pushed image. */
  | { type: 'BuildDone'; image: string }
  /** The engine named the template, which is not usable yet. */
  | { type: 'TemplateCreated'; templateID: string; buildID?: string; settings?: string }
  /** The template is usable; `duplicates` are further templates of this registration, to be removed. */
  | { type: 'Registered'; templateID: string; duplicates?: readonly string[] }
  | { type: 'TransientFailure'; retryAt: string; reason: string; message: string; logTail?: string }
  | { type: 'TerminalFailure'; reason: string; message: string; logTail?: string }
  /** The candidate cannot start, or its Job cannot go on, for a reason outside the Skill; only says why. */
  | { type: 'Blocked'; reason: string; message: string }
  /** What `Blocked` said no longer holds. */
  | { type: 'Unblocked' }
  /** A new value of the annotation rebuild. */
  | { type: 'Rebuild' }
  | { type: 'Suspended' }
  /** Another Skill (`nameHolder` of the context) holds the bare name: this one may not serve. */
  | { type: 'NameTaken' }
  /** Sent by every pass that finds the name free while a candidate is Held. */
  | { type: 'NameFree' }
  /** The engine no longer has the template of the served version. */
  | { type: 'TemplateLost'; templateID: string }
  /** The map of platform templates changed: runtime to template id. */
  | { type: 'Tier1MapChanged'; templateIDs: Readonly<Record<string, string>> }
  /** Applies the effective versionHistoryLimit. */
  | { type: 'LimitChanged' }
  /** Template, image record and image of the entry are gone. */
  | { type: 'RetiredGone'; entry: EntryId }
  /** The template of the entry is in use; `retriesLeft` false: the bound is reached. */
  | { type: 'RetiredInUse'; entry: EntryId; retriesLeft: boolean }
  /** The entry can never be deleted by the operator. */
  | { type: 'RetiredFailed'; entry: EntryId }
  | { type: 'Deleted' }
  /** The time for deletion is up: what is left goes to the ledger. */
  | { type: 'DeletionExpired' };

/** What a transition asks for once. */
export type Action =
  /** Before the slots are written. */
  | { type: 'CancelJob'; jobName: string }
  /** Before the slots are written, so that no id is ever without a record. */
  | { type: 'LedgerEntry'; entry: Retired; why: 'Overflow' | 'InUse' | 'Failed' | 'DeletionExpired' }
  /** After the slots are written: for the event that announces the switch. */
  | { type: 'VersionServed'; from?: Version | undefined; to: Version };

/** What the slots ask for as long as they stand; every pass may ask again. */
export type Work =
  /** Its own write, directly before the first Job. */
  | { type: 'AddFinalizer' }
  | { type: 'StartBuild'; digest: string; attempt: number }
  | { type: 'Register'; digest: string; image: string }
  /** Template, image record, image, in that order; only those that the entry carries. */
  | { type: 'DeleteExternal'; entry: Retired }
  | { type: 'RemoveFinalizer' };

/** Next slots and what to do once. `changed` false: the slots equal the ones that came in. */
export interface Step {
  slots: Slots;
  actions: Action[];
  changed: boolean;
}

/** The slots as the status records them. */
export const slotsOf = (skill: Skill): Slots => ({
  served: skill.status?.served,
  candidate: skill.status?.candidate,
  retired: skill.status?.retired ?? [],
});

/** 0: no sandbox, 1: platform template, 2: own image. */
export function tierOf(runtime: string): 0 | 1 | 2 {
  if (runtime === 'prompt-only') return 0;
  return runtime.includes('::') ? 1 : 2;
}

/** Whether the version holds an image or a template that the operator made for it; ids of platform templates never count. */
export const ownsExternal = (version: Version): boolean =>
  tierOf(version.runtime) === 2 && (version.image !== undefined || version.templateID !== undefined);

/** Whether a slot holds a Job, an image or a template, so that deletion must wait for the operator. */
export const needsFinalizer = (slots: Slots): boolean =>
  slots.candidate?.phase === 'Building' ||
  [slots.served, slots.candidate, ...slots.retired].some((version) => version !== undefined && ownsExternal(version));

/** The part that every slot shares. */
export function versionOf(from: Version): Version {
  const { version, digest, manifestSHA256, commit, runtime, engine, templateID, image, settings, files, bytes } = from;
  return {
    version,
    digest,
    manifestSHA256,
    commit,
    runtime,
    ...(engine === undefined ? {} : { engine }),
    ...(templateID === undefined ? {} : { templateID }),
    ...(image === undefined ? {} : { image }),
    ...(settings === undefined ? {} : { settings }),
    files,
    bytes,
  };
}

/** `templateIDs` of the status: what the served version runs on. */
export const templateIDsOf = (served: Version | undefined): Record<string, string> =>
  served?.engine && served.templateID ? { [served.engine]: served.templateID } : {};
