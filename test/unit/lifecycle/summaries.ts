import { expect } from 'vitest';
import type { Condition } from '../../../src/api/conditions.ts';
import { ABNORMAL_TRUE, SKILL_CONDITIONS } from '../../../src/api/conditions.ts';
import { type SkillFacts, summarizeSkill } from '../../../src/lifecycle/skill-summary.ts';

/** The moment of every summary. */
export const NOW = '2026-01-01T00:00:00Z';
/** The moment of every older transition. */
export const EARLIER = '2025-01-01T00:00:00Z';

/** Facts of a Skill of generation 2 whose pass is done; `extra` holds the rest. */
export const facts = (extra: Partial<SkillFacts> = {}): SkillFacts => ({
  generation: 2,
  now: NOW,
  suspended: false,
  ownGit: false,
  slots: { retired: [] },
  outcome: { kind: 'Done' },
  passed: {},
  ...extra,
});

/** A condition of an earlier summary. */
export const old = (type: string, status: Condition['status'], reason = 'Old'): Condition => ({
  ...{ type, status, reason, message: 'old', lastTransitionTime: EARLIER, observedGeneration: 1 },
});

/** The steps that a pass has behind it when the content is stored. */
export const STEPS = { Validated: 'valid', Materialized: 'stored' };

/** One line per condition: `Ready=True Succeeded`. */
export const lines = (extra: Partial<SkillFacts>): string[] => {
  const { conditions, observedGeneration } = summarizeSkill(facts(extra));
  for (const c of conditions) {
    expect(SKILL_CONDITIONS).toContain(c.type);
    if (ABNORMAL_TRUE.has(c.type)) expect(c.status).toBe('True');
    expect(c.reason).toMatch(/^[A-Za-z]+$/);
    expect(c.message).not.toBe('');
  }
  expect(new Set(conditions.map((c) => c.type)).size).toBe(conditions.length);
  return [`generation ${observedGeneration}`, ...conditions.map((c) => `${c.type}=${c.status} ${c.reason}`)];
};

/** Facts, and the lines that the summary says of them. */
export interface SummaryCase {
  title: string;
  facts: Partial<SkillFacts>;
  says: string[];
}
