import { describe, expect, test } from 'vitest';
import { candidate, own, platform, unbuilt, version } from './helpers.ts';
import { lines, NOW, old, STEPS, type SummaryCase } from './summaries.ts';

const QUEUED_BYO = candidate(unbuilt('B'), 'Queued', {
  reason: 'BuildNotConfigured',
  message: 'ask the administrator',
});

const UNKNOWN = 'E2B does not know the template base';

const cases: SummaryCase[] = [
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
];

describe('summarizeSkill', () => {
  test.each(cases)('$title', ({ facts: extra, says }) => {
    expect(lines(extra)).toEqual(says);
  });
});
