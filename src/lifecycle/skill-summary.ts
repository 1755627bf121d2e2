import type { Candidate, Version } from '../api/skill.ts';
import type { Reason } from '../base/reasons.ts';
import {
  type Base,
  Conditions,
  type Outcome,
  observedGenerationOf,
  type Summary,
  suspendedSummary,
} from './condition.ts';
import { type Slots, tierOf } from './slots.ts';

/** The steps of a pass that have a condition of their own. */
export type SkillStep = 'Fetched' | 'Validated' | 'Materialized';

/** What a pass over a Skill found; steps it did not reach leave their condition as it stands. */
export interface SkillFacts extends Base {
  slots: Slots;
  outcome: Outcome<SkillStep>;
  /** The Skill has a Git source of its own: only then there is a condition Fetched. */
  ownGit: boolean;
  /** Steps that this pass finished, with the message of the condition. */
  passed: Partial<Record<SkillStep, string>>;
  /** The content breaks the protocol: the message, see `invalidMessage`. */
  invalid?: string | undefined;
  /** The store lost the served package and Git no longer offers it: the message. */
  packageLost?: string | undefined;
  /** The engine does not know the platform template that the Skill runs on: the message. */
  templateUnknown?: string | undefined;
}

/** What Ready says, and which of Reconciling and Stalled stands beside it. */
interface Verdict {
  ready: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  beside?: 'Stalled' | 'Reconciling' | 'Retrying';
}

const PASSED_REASON: Record<SkillStep, Reason> = { Fetched: 'Succeeded', Validated: 'Valid', Materialized: 'Stored' };

const DOING: Partial<Record<Candidate['phase'], string>> = {
  Queued: 'waits for its build',
  Building: 'is being built',
  Registering: 'is being registered',
};

function ofCandidate(candidate: Candidate): Verdict {
  const { phase, version, reason, message, retryAt } = candidate;
  if (phase === 'Failed' || phase === 'Held')
    return {
      ready: 'False',
      reason: reason ?? 'InternalError',
      message: message ?? `version ${version} failed`,
      beside: 'Stalled',
    };
  if (phase === 'Queued' && (reason === 'BuildNotConfigured' || reason === 'TemplateNotConfigured'))
    return { ready: 'False', reason, message: message ?? '', beside: 'Stalled' };
  if (reason !== undefined)
    return {
      ready: 'False',
      reason,
      message: `${message ?? ''}${retryAt === undefined ? '' : `; next attempt at ${retryAt}`}`,
      beside: 'Retrying',
    };
  return {
    ready: 'Unknown',
    reason: 'Progressing',
    message: `version ${version} ${DOING[phase]}`,
    beside: 'Reconciling',
  };
}

function verdictOf(facts: SkillFacts): Verdict {
  const { outcome, slots } = facts;
  if (outcome.kind === 'Progressing')
    return { ready: 'Unknown', reason: 'Progressing', message: outcome.message, beside: 'Reconciling' };
  if (outcome.kind === 'Failed') {
    const beside = outcome.policy === 'Stalled' ? 'Stalled' : 'Retrying';
    return { ready: 'False', reason: outcome.reason, message: outcome.message, beside };
  }
  if (facts.invalid !== undefined)
    return { ready: 'False', reason: 'Invalid', message: facts.invalid, beside: 'Stalled' };
  if (facts.packageLost !== undefined)
    return { ready: 'False', reason: 'PackageLost', message: facts.packageLost, beside: 'Stalled' };
  if (facts.templateUnknown !== undefined)
    return { ready: 'False', reason: 'TemplateNotFound', message: facts.templateUnknown, beside: 'Stalled' };
  if (slots.candidate) return ofCandidate(slots.candidate);
  if (slots.served) return { ready: 'True', reason: 'Succeeded', message: `version ${slots.served.version} is served` };
  return {
    ready: 'False',
    reason: 'NothingServed',
    message: 'no version has become servable yet',
    beside: 'Reconciling',
  };
}

/** What `explained` of the controllers puts last: the command that retries now has to stay at the end (I17). */
const COMMAND = '; retry now: ';

/** The message with the news that the old version is still there, before a command that ends it. */
function withStays(message: string, served: Version | undefined): string {
  if (!served) return message;
  const at = message.lastIndexOf(COMMAND);
  const [text, command] = at < 0 ? [message, ''] : [message.slice(0, at), message.slice(at)];
  return `${text}; version ${served.version} stays served${command}`;
}

function setReady(conditions: Conditions, verdict: Verdict, served: Version | undefined): void {
  const { ready, reason, message, beside } = verdict;
  conditions.set('Ready', ready, reason, ready === 'True' ? message : withStays(message, served));
  if (beside === 'Reconciling') conditions.set('Reconciling', 'True', 'Progressing', message);
  if (beside === 'Retrying') conditions.set('Reconciling', 'True', 'ProgressingWithRetry', message);
  if (beside === 'Stalled') conditions.set('Stalled', 'True', reason, message);
}

function setServing(conditions: Conditions, facts: SkillFacts): void {
  const { served } = facts.slots;
  if (facts.packageLost !== undefined) conditions.set('Serving', 'False', 'PackageLost', facts.packageLost);
  else if (served)
    conditions.set('Serving', 'True', 'ServingVersion', `version ${served.version} of commit ${served.commit}`);
  else conditions.set('Serving', 'False', 'NothingServed', 'no version has become servable yet; Ready says why');
}

function setStep(conditions: Conditions, facts: SkillFacts, step: SkillStep): void {
  const { outcome, passed, invalid } = facts;
  const message = passed[step];
  if (outcome.kind === 'Failed' && outcome.step === step)
    conditions.set(step, 'False', outcome.reason, outcome.message);
  else if (step === 'Validated' && invalid !== undefined) conditions.set(step, 'False', 'Invalid', invalid);
  else if (message !== undefined) conditions.set(step, 'True', PASSED_REASON[step], message);
  else conditions.keep(step);
}

type Mark = [status: 'True' | 'False' | 'Unknown', reason: string, message: string];
const PENDING = 'comes after the build';

/** Built and Registered of a version with its own image. */
function ownImageMarks(conditions: Conditions, target: Candidate | Version): { built: Mark; registered: Mark } {
  const built: Mark = ['True', 'Succeeded', `image ${target.image ?? 'pushed'}`];
  const registered: Mark = ['True', 'Registered', `template ${target.templateID}`];
  if (!('phase' in target) || target.phase === 'Held') return { built, registered };
  const { phase, reason, message } = target;
  const now: Mark =
    reason === undefined ? ['Unknown', 'Progressing', DOING[phase] ?? phase] : ['False', reason, message ?? ''];
  // A candidate that failed no longer carries its image: what Built said before tells which step it was.
  const afterBuild =
    phase === 'Failed' &&
    conditions.before('Built')?.status === 'True' &&
    conditions.before('Registered')?.status !== 'True';
  if (phase === 'Registering') return { built, registered: now };
  if (afterBuild) return { built: ['True', 'Succeeded', 'the image was built'], registered: now };
  return { built: now, registered: ['Unknown', 'Progressing', PENDING] };
}

function setBuild(conditions: Conditions, { slots, templateUnknown }: SkillFacts): void {
  const target = slots.candidate ?? slots.served;
  if (!target) return;
  const tier = tierOf(target.runtime);
  if (tier === 2) {
    const { built, registered } = ownImageMarks(conditions, target);
    conditions.set('Built', ...built);
    conditions.set('Registered', ...registered);
    return;
  }
  conditions.set('Built', 'True', 'NotRequired', `runtime ${target.runtime} needs no image`);
  if (tier === 0) conditions.set('Registered', 'True', 'NotRequired', `runtime ${target.runtime} needs no template`);
  else if (templateUnknown !== undefined) conditions.set('Registered', 'False', 'TemplateNotFound', templateUnknown);
  else if (target.templateID !== undefined)
    conditions.set('Registered', 'True', 'Registered', `platform template ${target.templateID}`);
  else conditions.set('Registered', 'False', 'TemplateNotConfigured', ofCandidate(target as Candidate).message);
}

/**
 * Conditions and observedGeneration of a Skill after a pass, computed from what is known; kstatus-correct.
 * Ready: what the spec points at is what is served. Serving: some version is served.
 */
export function summarizeSkill(facts: SkillFacts): Summary {
  if (facts.suspended) return suspendedSummary(facts);
  const conditions = new Conditions(facts);
  setReady(conditions, verdictOf(facts), facts.packageLost === undefined ? facts.slots.served : undefined);
  setServing(conditions, facts);
  if (facts.ownGit) setStep(conditions, facts, 'Fetched');
  setStep(conditions, facts, 'Validated');
  setStep(conditions, facts, 'Materialized');
  setBuild(conditions, facts);
  const { candidate } = facts.slots;
  if (candidate?.phase === 'Held') conditions.set('NameConflict', 'True', 'NameConflict', candidate.message ?? '');
  return { observedGeneration: observedGenerationOf(facts, facts.outcome), conditions: conditions.list };
}
