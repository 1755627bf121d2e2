import { describe, expect, test } from 'vitest';
import type { Condition } from '../../../src/api/conditions.ts';
import type { Skill, SkillStatus } from '../../../src/api/skill.ts';
import {
  countSkills,
  type SourceFacts,
  skillState,
  skillsHealthy,
  summarizeSource,
} from '../../../src/lifecycle/source-summary.ts';
import { candidate, unbuilt } from './helpers.ts';

const NOW = '2026-01-01T00:00:00Z';
const facts = (extra: Partial<SourceFacts> = {}): SourceFacts => ({
  generation: 3,
  now: NOW,
  suspended: false,
  outcome: { kind: 'Done' },
  fetched: 'main@sha1:abc',
  applied: 12,
  problems: 0,
  ...extra,
});
const condition = (type: string, status: Condition['status'], reason = 'Old'): Condition => ({
  ...{ type, status, reason, message: 'old', lastTransitionTime: '2025-01-01T00:00:00Z' },
});

const cases: { title: string; facts: Partial<SourceFacts>; says: string[] }[] = [
  {
    title: 'fetched and applied',
    facts: {},
    says: [
      'generation 3',
      'Ready=True Succeeded: main@sha1:abc: 12 skills applied',
      'Fetched=True Succeeded: main@sha1:abc',
    ],
  },
  {
    title: 'problems do not make it unready',
    facts: { applied: 1, problems: 2 },
    says: [
      'generation 3',
      'Ready=True Succeeded: main@sha1:abc: 1 skill applied; 2 problems in status.problems',
      'Fetched=True Succeeded: main@sha1:abc',
    ],
  },
  {
    title: 'a blocked prune does not make it unready',
    facts: { pruneBlocked: 'nine vanish' },
    says: [
      'generation 3',
      'Ready=True Succeeded: main@sha1:abc: 12 skills applied; vanished skills are kept, PruneBlocked says why',
      'Fetched=True Succeeded: main@sha1:abc',
      'PruneBlocked=True PruneBlocked: nine vanish',
    ],
  },
  {
    title: 'a pass that ended without it lifts the block',
    facts: { status: { conditions: [condition('PruneBlocked', 'True')] } },
    says: [
      'generation 3',
      'Ready=True Succeeded: main@sha1:abc: 12 skills applied',
      'Fetched=True Succeeded: main@sha1:abc',
    ],
  },
  {
    title: 'a pass that failed keeps the block',
    facts: {
      fetched: undefined,
      status: { observedGeneration: 2, conditions: [condition('PruneBlocked', 'True')] },
      outcome: { kind: 'Failed', policy: 'Retry', reason: 'GitTimeout', message: 'slow', step: 'Fetched' },
    },
    says: [
      'generation 2',
      'Ready=False GitTimeout: slow',
      'Reconciling=True ProgressingWithRetry: slow',
      'Fetched=False GitTimeout: slow',
      'PruneBlocked=True Old: old',
    ],
  },
  {
    title: 'fetched, but the API refuses a Skill',
    facts: {
      status: { observedGeneration: 2 },
      outcome: { kind: 'Failed', policy: 'Retry', reason: 'ApplyRejected', message: 'quota' },
    },
    says: [
      'generation 2',
      'Ready=False ApplyRejected: quota',
      'Reconciling=True ProgressingWithRetry: quota',
      'Fetched=True Succeeded: main@sha1:abc',
    ],
  },
  {
    title: 'a spec that must change',
    facts: {
      fetched: undefined,
      outcome: { kind: 'Failed', policy: 'Stalled', reason: 'NotSupportedYet', message: 'spec.inline' },
    },
    says: ['generation 3', 'Ready=False NotSupportedYet: spec.inline', 'Stalled=True NotSupportedYet: spec.inline'],
  },
  {
    title: 'a pass under way keeps what was fetched before',
    facts: {
      fetched: undefined,
      status: { conditions: [condition('Fetched', 'True')] },
      outcome: { kind: 'Progressing', message: 'fetching' },
    },
    says: [
      'generation -1',
      'Ready=Unknown Progressing: fetching',
      'Reconciling=True Progressing: fetching',
      'Fetched=True Old: old',
    ],
  },
  {
    title: 'suspended leaves SkillsHealthy to its own writer',
    facts: {
      suspended: true,
      status: {
        conditions: [condition('Ready', 'True'), condition('SkillsHealthy', 'True'), condition('Reconciling', 'True')],
      },
    },
    says: ['generation 3', 'Ready=True Old: old'],
  },
];

describe('summarizeSource', () => {
  test.each(cases)('$title', ({ facts: extra, says }) => {
    const { observedGeneration, conditions } = summarizeSource(facts(extra));
    expect([
      `generation ${observedGeneration}`,
      ...conditions.map((c) => `${c.type}=${c.status} ${c.reason}: ${c.message}`),
    ]).toEqual(says);
  });
});

const skill = (status: SkillStatus | undefined, generation = 1): Skill => ({
  metadata: { name: 's', generation },
  spec: { source: { marketplaceRef: { name: 'team' } }, plugin: 'p', path: 'x' },
  ...(status ? { status } : {}),
});
const withConditions = (...conditions: Condition[]): SkillStatus => ({ observedGeneration: 1, conditions });
const stalled = (reason: string) =>
  withConditions(condition('Ready', 'False', reason), condition('Stalled', 'True', reason));

describe('skillState', () => {
  test.each<[string, Skill, string]>([
    ['no status yet', skill(undefined), 'waiting'],
    ['Ready', skill(withConditions(condition('Ready', 'True'))), 'ready'],
    ['Ready for an older spec', skill(withConditions(condition('Ready', 'True')), 2), 'waiting'],
    ['invalid', skill(stalled('Invalid')), 'invalid'],
    ['a failed build', skill(stalled('EngineBuildFailed')), 'failed'],
    ['builds not configured', skill(stalled('BuildNotConfigured')), 'waiting'],
    ['a taken name', skill(stalled('NameConflict')), 'waiting'],
    [
      'a build under way',
      skill({ ...withConditions(condition('Ready', 'Unknown')), candidate: candidate(unbuilt('B'), 'Building') }),
      'building',
    ],
    [
      'a store that is down',
      skill(withConditions(condition('Ready', 'False'), condition('Reconciling', 'True'))),
      'waiting',
    ],
  ])('%s', (_title, object, state) => {
    expect(skillState(object)).toBe(state);
  });
  test('the five states add up to total', () => {
    const counts = countSkills([
      skill(undefined),
      skill(stalled('Invalid')),
      skill(stalled('Invalid')),
      skill(withConditions(condition('Ready', 'True'))),
    ]);
    expect(counts).toEqual({ total: 4, ready: 1, invalid: 2, building: 0, failed: 0, waiting: 1 });
  });
});

const TEAM = { namespace: 'docs', name: 'team' };

describe('skillsHealthy', () => {
  const none = { total: 0, ready: 0, invalid: 0, building: 0, failed: 0, waiting: 0 };
  test('says how many are not ready and lists them by a command', () => {
    const c = skillsHealthy({ ...none, total: 10, ready: 7, invalid: 2, waiting: 1 }, TEAM, undefined, NOW);
    expect(`${c.status} ${c.reason}: ${c.message}`).toMatchInlineSnapshot(
      `"False SomeSkillsNotReady: 3 of 10 skills not ready: 2 invalid, 1 waiting; kubectl -n docs get skills -l skills.tfrobot.io/source=team lists them"`,
    );
  });
  test('is True when all are ready, and for a source without skills', () => {
    expect(skillsHealthy({ ...none, total: 3, ready: 3 }, TEAM, undefined, NOW)).toMatchObject({
      status: 'True',
      message: 'all 3 skills ready',
    });
    expect(skillsHealthy(none, TEAM, undefined, NOW)).toMatchObject({ status: 'True', reason: 'AllSkillsReady' });
  });
  test('keeps its transition time while the status stays', () => {
    const before = condition('SkillsHealthy', 'True');
    expect(skillsHealthy(none, TEAM, before, NOW).lastTransitionTime).toBe(before.lastTransitionTime);
  });
});
