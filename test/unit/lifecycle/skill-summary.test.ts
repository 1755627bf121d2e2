import { describe, expect, test } from 'vitest';
import type { Condition } from '../../../src/api/conditions.ts';
import { ABNORMAL_TRUE, SKILL_CONDITIONS } from '../../../src/api/conditions.ts';
import { invalidMessage } from '../../../src/lifecycle/findings.ts';
import { type SkillFacts, summarizeSkill } from '../../../src/lifecycle/skill-summary.ts';
import { candidate, own, platform, unbuilt, version } from './helpers.ts';

const NOW = '2026-01-01T00:00:00Z';
const EARLIER = '2025-01-01T00:00:00Z';

const facts = (extra: Partial<SkillFacts> = {}): SkillFacts => ({
  generation: 2,
  now: NOW,
  suspended: false,
  ownGit: false,
  slots: { retired: [] },
  outcome: { kind: 'Done' },
  passed: {},
  ...extra,
});

const old = (type: string, status: Condition['status'], reason = 'Old'): Condition => ({
  ...{ type, status, reason, message: 'old', lastTransitionTime: EARLIER, observedGeneration: 1 },
});

/** One line per condition: `Ready=True Succeeded`. */
const lines = (extra: Partial<SkillFacts>): string[] => {
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

const STEPS = { Validated: 'valid', Materialized: 'stored' };
const QUEUED_BYO = candidate(unbuilt('B'), 'Queued', {
  reason: 'BuildNotConfigured',
  message: 'ask the administrator',
});

const UNKNOWN = 'E2B does not know the template base';

const cases: { title: string; facts: Partial<SkillFacts>; says: string[] }[] = [
  {
    title: 'a served prompt-only version',
    facts: { slots: { served: version('A'), retired: [] }, passed: STEPS },
    says: [
      'generation 2',
      'Ready=True Succeeded',
      'Serving=True ServingVersion',
      'Validated=True Valid',
      'Materialized=True Stored',
      'Built=True NotRequired',
      'Registered=True NotRequired',
    ],
  },
  {
    title: 'a served version on a platform template that the engine does not know',
    facts: { slots: { served: platform('A'), retired: [] }, passed: STEPS, templateUnknown: UNKNOWN },
    says: [
      'generation 2',
      'Ready=False TemplateNotFound',
      'Stalled=True TemplateNotFound',
      'Serving=True ServingVersion',
      'Validated=True Valid',
      'Materialized=True Stored',
      'Built=True NotRequired',
      'Registered=False TemplateNotFound',
    ],
  },
  {
    title: 'a served version on a platform template, from a repository of its own',
    facts: { slots: { served: platform('A'), retired: [] }, passed: { ...STEPS, Fetched: 'main' }, ownGit: true },
    says: [
      'generation 2',
      'Ready=True Succeeded',
      'Serving=True ServingVersion',
      'Fetched=True Succeeded',
      'Validated=True Valid',
      'Materialized=True Stored',
      'Built=True NotRequired',
      'Registered=True Registered',
    ],
  },
  {
    title: 'a served version with an image of its own',
    facts: { slots: { served: own('A'), retired: [] }, passed: STEPS },
    says: [
      'generation 2',
      'Ready=True Succeeded',
      'Serving=True ServingVersion',
      'Validated=True Valid',
      'Materialized=True Stored',
      'Built=True Succeeded',
      'Registered=True Registered',
    ],
  },
  {
    title: 'own image without configured builds: stalled, nothing is served',
    facts: { slots: { candidate: QUEUED_BYO, retired: [] }, passed: STEPS },
    says: [
      'generation 2',
      'Ready=False BuildNotConfigured',
      'Stalled=True BuildNotConfigured',
      'Serving=False NothingServed',
      'Validated=True Valid',
      'Materialized=True Stored',
      'Built=False BuildNotConfigured',
      'Registered=Unknown Progressing',
    ],
  },
  {
    title: 'a platform template that the map lacks',
    facts: {
      slots: {
        candidate: candidate(version('A', 'e2b::node'), 'Queued', { reason: 'TemplateNotConfigured', message: 'ask' }),
        retired: [],
      },
      passed: STEPS,
    },
    says: [
      'generation 2',
      'Ready=False TemplateNotConfigured',
      'Stalled=True TemplateNotConfigured',
      'Serving=False NothingServed',
      'Validated=True Valid',
      'Materialized=True Stored',
      'Built=True NotRequired',
      'Registered=False TemplateNotConfigured',
    ],
  },
  {
    title: 'invalid content while an older version is served',
    facts: { slots: { served: version('A'), retired: [] }, invalid: 'SKILL.md:3: bad' },
    says: [
      'generation 2',
      'Ready=False Invalid',
      'Stalled=True Invalid',
      'Serving=True ServingVersion',
      'Validated=False Invalid',
      'Built=True NotRequired',
      'Registered=True NotRequired',
    ],
  },
  {
    title: 'invalid content and nothing served',
    facts: { invalid: 'SKILL.md:3: bad' },
    says: [
      'generation 2',
      'Ready=False Invalid',
      'Stalled=True Invalid',
      'Serving=False NothingServed',
      'Validated=False Invalid',
    ],
  },
  {
    title: 'a build under way',
    facts: {
      slots: { served: own('A'), candidate: candidate(unbuilt('B'), 'Building', { jobName: 'j' }), retired: [] },
      passed: STEPS,
    },
    says: [
      'generation 2',
      'Ready=Unknown Progressing',
      'Reconciling=True Progressing',
      'Serving=True ServingVersion',
      'Validated=True Valid',
      'Materialized=True Stored',
      'Built=Unknown Progressing',
      'Registered=Unknown Progressing',
    ],
  },
  {
    title: 'a registration that is tried again',
    facts: {
      slots: {
        candidate: candidate({ ...unbuilt('B'), image: 'i' }, 'Registering', {
          reason: 'EngineBusy',
          message: 'busy',
          retryAt: NOW,
        }),
        retired: [],
      },
    },
    says: [
      'generation 2',
      'Ready=False EngineBusy',
      'Reconciling=True ProgressingWithRetry',
      'Serving=False NothingServed',
      'Built=True Succeeded',
      'Registered=False EngineBusy',
    ],
  },
  {
    title: 'a failed build',
    facts: {
      slots: {
        served: own('A'),
        candidate: candidate(unbuilt('B'), 'Failed', { reason: 'EngineBuildFailed', message: 'exit 1' }),
        retired: [],
      },
    },
    says: [
      'generation 2',
      'Ready=False EngineBuildFailed',
      'Stalled=True EngineBuildFailed',
      'Serving=True ServingVersion',
      'Built=False EngineBuildFailed',
      'Registered=Unknown Progressing',
    ],
  },
  {
    title: 'a failed registration: what was built stays built',
    facts: {
      status: { observedGeneration: 1, conditions: [old('Built', 'True'), old('Registered', 'Unknown')] },
      slots: { candidate: candidate(unbuilt('B'), 'Failed', { reason: 'EngineRejected', message: 'no' }), retired: [] },
    },
    says: [
      'generation 2',
      'Ready=False EngineRejected',
      'Stalled=True EngineRejected',
      'Serving=False NothingServed',
      'Built=True Succeeded',
      'Registered=False EngineRejected',
    ],
  },
  {
    title: 'a ready version whose name another Skill holds',
    facts: {
      slots: {
        candidate: candidate(version('B'), 'Held', { reason: 'NameConflict', message: 'held by x' }),
        retired: [],
      },
      passed: STEPS,
    },
    says: [
      'generation 2',
      'Ready=False NameConflict',
      'Stalled=True NameConflict',
      'Serving=False NothingServed',
      'Validated=True Valid',
      'Materialized=True Stored',
      'Built=True NotRequired',
      'Registered=True NotRequired',
      'NameConflict=True NameConflict',
    ],
  },
  {
    title: 'a store that is down: the step fails, the pass is not whole, the served version stays',
    facts: {
      status: { observedGeneration: 1, conditions: [old('Materialized', 'True')] },
      slots: { served: version('A'), retired: [] },
      passed: { Validated: 'valid' },
      outcome: {
        kind: 'Failed',
        policy: 'Retry',
        reason: 'StoreUnavailable',
        message: 'no connection',
        step: 'Materialized',
      },
    },
    says: [
      'generation 1',
      'Ready=False StoreUnavailable',
      'Reconciling=True ProgressingWithRetry',
      'Serving=True ServingVersion',
      'Validated=True Valid',
      'Materialized=False StoreUnavailable',
      'Built=True NotRequired',
      'Registered=True NotRequired',
    ],
  },
  {
    title: 'a Secret that is missing waits: a fix outside is looked for again',
    facts: {
      ownGit: true,
      outcome: { kind: 'Failed', policy: 'Waiting', reason: 'SecretNotFound', message: 'no Secret', step: 'Fetched' },
    },
    says: [
      'generation -1',
      'Ready=False SecretNotFound',
      'Reconciling=True ProgressingWithRetry',
      'Serving=False NothingServed',
      'Fetched=False SecretNotFound',
    ],
  },
  {
    title: 'an address that the author must change stalls, and the generation counts as seen',
    facts: {
      ownGit: true,
      outcome: { kind: 'Failed', policy: 'Stalled', reason: 'URLInvalid', message: 'bad', step: 'Fetched' },
    },
    says: [
      'generation 2',
      'Ready=False URLInvalid',
      'Stalled=True URLInvalid',
      'Serving=False NothingServed',
      'Fetched=False URLInvalid',
    ],
  },
  {
    title: 'a pass that says it is under way',
    facts: {
      slots: { served: version('A'), retired: [] },
      outcome: { kind: 'Progressing', message: 'reading' },
      status: { observedGeneration: 1 },
    },
    says: [
      'generation 1',
      'Ready=Unknown Progressing',
      'Reconciling=True Progressing',
      'Serving=True ServingVersion',
      'Built=True NotRequired',
      'Registered=True NotRequired',
    ],
  },
  {
    title: 'a package that is lost everywhere',
    facts: { slots: { served: version('A'), retired: [] }, packageLost: 'lost' },
    says: [
      'generation 2',
      'Ready=False PackageLost',
      'Stalled=True PackageLost',
      'Serving=False PackageLost',
      'Built=True NotRequired',
      'Registered=True NotRequired',
    ],
  },
  {
    title: 'suspended: Ready and the rest stay, Reconciling goes, the generation counts as seen',
    facts: {
      suspended: true,
      status: {
        observedGeneration: 1,
        conditions: [old('Ready', 'True'), old('Reconciling', 'True'), old('Serving', 'True')],
      },
    },
    says: ['generation 2', 'Ready=True Old', 'Serving=True Old'],
  },
  {
    title: 'suspended from the start',
    facts: { suspended: true, status: { observedGeneration: -1 } },
    says: ['generation 2', 'Ready=False Suspended'],
  },
];

describe('summarizeSkill', () => {
  test.each(cases)('$title', ({ facts: extra, says }) => {
    expect(lines(extra)).toEqual(says);
  });

  test('the transition time moves with the status alone', () => {
    const slots = { served: version('A'), retired: [] };
    const status = { observedGeneration: 1, conditions: [old('Ready', 'True'), old('Serving', 'False')] };
    const { conditions } = summarizeSkill(facts({ slots, status }));
    expect(conditions.find((c) => c.type === 'Ready')).toMatchObject({
      lastTransitionTime: EARLIER,
      observedGeneration: 2,
    });
    expect(conditions.find((c) => c.type === 'Serving')?.lastTransitionTime).toBe(NOW);
  });

  test('a second summary of the same facts is the same: nothing to write', () => {
    const slots = { served: version('A'), retired: [] };
    const first = summarizeSkill(facts({ slots, passed: STEPS }));
    expect(summarizeSkill(facts({ slots, passed: STEPS, status: first, now: '2027-01-01T00:00:00Z' }))).toEqual(first);
  });

  test('Ready says what is wrong and what stays served', () => {
    const invalid = invalidMessage([
      {
        code: 'x',
        path: 'SKILL.md',
        line: 3,
        column: 14,
        message: 'description is missing',
        hint: 'type description: …',
      },
      { code: 'y', path: '', message: 'm', hint: 'h' },
    ]);
    const { conditions } = summarizeSkill(facts({ slots: { served: version('A'), retired: [] }, invalid }));
    expect(conditions[0]?.message).toMatchInlineSnapshot(
      `"SKILL.md:3:14: description is missing (type description: …); 1 more in status.violations; version A stays served"`,
    );
  });

  test('Ready of a failed attempt says when the next one is', () => {
    const slots = {
      candidate: candidate({ ...unbuilt('B'), image: 'i' }, 'Registering', {
        reason: 'EngineBusy',
        message: 'the engine is busy',
        retryAt: NOW,
      }),
      retired: [],
    };
    expect(summarizeSkill(facts({ slots })).conditions[0]?.message).toMatchInlineSnapshot(
      `"the engine is busy; next attempt at 2026-01-01T00:00:00Z"`,
    );
  });

  test('a message is cut and carries no secret', () => {
    const message = `see https://user:hunter22@host/x ${'y'.repeat(5000)}`;
    const outcome = { kind: 'Failed', policy: 'Retry', reason: 'GitOperationFailed', message } as const;
    const [ready] = summarizeSkill(facts({ outcome })).conditions;
    expect(ready?.message.length).toBe(2048);
    expect(ready?.message).not.toContain('hunter22');
  });
});
