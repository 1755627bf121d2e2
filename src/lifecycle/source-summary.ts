import type { Condition } from '../api/conditions.ts';
import { LABELS } from '../api/labels.ts';
import type { SkillCounts } from '../api/marketplacesource.ts';
import type { Skill } from '../api/skill.ts';
import {
  type Base,
  Conditions,
  type Outcome,
  observedGenerationOf,
  type Summary,
  suspendedSummary,
} from './condition.ts';

/** What a pass over a MarketplaceSource found. */
export interface SourceFacts extends Base {
  outcome: Outcome<'Fetched'>;
  /** Revision that was fetched, once it was; shown in Fetched. */
  fetched?: string | undefined;
  /** Number of Skills that the pass left live; shown in Ready. */
  applied: number;
  /** Number of entries for status.problems. */
  problems: number;
  /** The guard stopped the prune: the message with names and the command that allows it. */
  pruneBlocked?: string | undefined;
}

const plural = (n: number, word: string) => `${n} ${word}${n === 1 ? '' : 's'}`;

function doneMessage(facts: SourceFacts): string {
  const parts = [`${facts.fetched ?? 'the revision'}: ${plural(facts.applied, 'skill')} applied`];
  if (facts.problems > 0) parts.push(`${plural(facts.problems, 'problem')} in status.problems`);
  if (facts.pruneBlocked !== undefined) parts.push('vanished skills are kept, PruneBlocked says why');
  return parts.join('; ');
}

function setReady(conditions: Conditions, facts: SourceFacts): void {
  const { outcome } = facts;
  if (outcome.kind === 'Done') conditions.set('Ready', 'True', 'Succeeded', doneMessage(facts));
  else if (outcome.kind === 'Progressing') {
    conditions.set('Ready', 'Unknown', 'Progressing', outcome.message);
    conditions.set('Reconciling', 'True', 'Progressing', outcome.message);
  } else {
    conditions.set('Ready', 'False', outcome.reason, outcome.message);
    if (outcome.policy === 'Stalled') conditions.set('Stalled', 'True', outcome.reason, outcome.message);
    else conditions.set('Reconciling', 'True', 'ProgressingWithRetry', outcome.message);
  }
}

/**
 * Conditions and observedGeneration of a MarketplaceSource after a pass, without SkillsHealthy, which another field manager writes.
 * Ready: the revision is fetched and its Skills are applied; the health of Skills is no part of it.
 */
export function summarizeSource(facts: SourceFacts): Summary {
  if (facts.suspended) {
    const summary = suspendedSummary(facts);
    return { ...summary, conditions: summary.conditions.filter((condition) => condition.type !== 'SkillsHealthy') };
  }
  const conditions = new Conditions(facts);
  const { outcome } = facts;
  setReady(conditions, facts);
  if (outcome.kind === 'Failed' && outcome.step === 'Fetched')
    conditions.set('Fetched', 'False', outcome.reason, outcome.message);
  else if (facts.fetched !== undefined) conditions.set('Fetched', 'True', 'Succeeded', facts.fetched);
  else conditions.keep('Fetched');
  if (facts.pruneBlocked !== undefined) conditions.set('PruneBlocked', 'True', 'PruneBlocked', facts.pruneBlocked);
  else if (outcome.kind !== 'Done') conditions.keep('PruneBlocked');
  return { observedGeneration: observedGenerationOf(facts, outcome), conditions: conditions.list };
}

/** The one state in which a Skill is counted. */
export type SkillState = Exclude<keyof SkillCounts, 'total'>;

const WAITS = new Set(['BuildNotConfigured', 'TemplateNotConfigured', 'NameConflict']);

/** State of one Skill as its status tells it; a status that is behind its spec counts as waiting. */
export function skillState(skill: Skill): SkillState {
  const { status, metadata } = skill;
  const find = (type: string) => status?.conditions?.find((condition) => condition.type === type);
  if (status?.observedGeneration !== metadata.generation) return 'waiting';
  if (find('Ready')?.status === 'True') return 'ready';
  const stalled = find('Stalled')?.reason;
  if (stalled === 'Invalid') return 'invalid';
  if (stalled !== undefined) return WAITS.has(stalled) ? 'waiting' : 'failed';
  const phase = status?.candidate?.phase;
  return phase === 'Building' || phase === 'Registering' ? 'building' : 'waiting';
}

/** Counts Skills by state; the five states add up to `total`. */
export function countSkills(skills: Iterable<Skill>): SkillCounts {
  const counts: SkillCounts = { total: 0, ready: 0, invalid: 0, building: 0, failed: 0, waiting: 0 };
  for (const skill of skills) {
    counts.total++;
    counts[skillState(skill)]++;
  }
  return counts;
}

/** Condition SkillsHealthy for these counts; `before` is the one that stands, `source` is named in the command of the message. */
export function skillsHealthy(
  counts: SkillCounts,
  source: { namespace?: string; name: string },
  before: Condition | undefined,
  now: string,
): Condition {
  const bad = counts.total - counts.ready;
  const status = bad === 0 ? 'True' : 'False';
  const parts = (['invalid', 'failed', 'building', 'waiting'] as const)
    .filter((state) => counts[state] > 0)
    .map((state) => `${counts[state]} ${state}`);
  return {
    type: 'SkillsHealthy',
    status,
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : now,
    reason: bad === 0 ? 'AllSkillsReady' : 'SomeSkillsNotReady',
    message:
      bad === 0
        ? `all ${plural(counts.total, 'skill')} ready`
        : `${bad} of ${plural(counts.total, 'skill')} not ready: ${parts.join(', ')}; kubectl -n ${source.namespace} get skills -l ${LABELS.source}=${source.name} lists them`,
  };
}
