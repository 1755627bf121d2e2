import { describe, expect, test } from 'vitest';
import { invalidMessage } from '../../../src/lifecycle/findings.ts';
import { summarizeSkill } from '../../../src/lifecycle/skill-summary.ts';
import { candidate, unbuilt, version } from './helpers.ts';
import { EARLIER, facts, lines, NOW, old, STEPS, type SummaryCase } from './summaries.ts';

const cases: SummaryCase[] = [
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
