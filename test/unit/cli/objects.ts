import type { Condition } from '../../../src/api/conditions.ts';
import type { MarketplaceSource, MarketplaceSourceSpec } from '../../../src/api/marketplacesource.ts';
import type { Skill, SkillSpec, SkillStatus, Version } from '../../../src/api/skill.ts';

/** Noon of a day; objects are made five minutes before. */
export const NOW = Date.parse('2026-03-01T12:00:00Z');
const MADE = '2026-03-01T11:55:00Z';
const COMMIT = '0123456789abcdef0123456789abcdef01234567';
const TREE = 'f'.repeat(40);

/** `Type=Status Reason: message` as a condition of generation 1. */
function conditions(...texts: string[]): Condition[] {
  return texts.map((text) => {
    const [, type = '', status = '', reason = '', message = ''] =
      /^(\w+)=(\w+) (\w+)(?:: ([\s\S]*))?$/.exec(text) ?? [];
    return {
      type,
      status: status as Condition['status'],
      reason,
      message,
      observedGeneration: 1,
      lastTransitionTime: MADE,
    };
  });
}

const version = (more: Partial<Version> = {}): Version => ({
  version: 'aaaaaaaaaaaa',
  digest: 'a'.repeat(64),
  manifestSHA256: 'b'.repeat(64),
  commit: COMMIT,
  runtime: 'prompt-only',
  files: 2,
  bytes: 1234,
  ...more,
});

function skill(
  status: SkillStatus | undefined,
  more: { name?: string; spec?: Partial<SkillSpec>; metadata?: Partial<Skill['metadata']> } = {},
): Skill {
  const name = more.name ?? 'team.docs.pdf';
  const directory = name.split('.').at(-1);
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      generation: 1,
      creationTimestamp: MADE,
      ...more.metadata,
    },
    spec: {
      source: { marketplaceRef: { name: 'team' } },
      plugin: 'docs',
      path: `plugins/docs/skills/${directory}`,
      revision: { commit: COMMIT, tree: TREE },
      ...more.spec,
    },
    ...(status ? { status: { observedGeneration: 1, observed: { commit: COMMIT, tree: TREE }, ...status } } : {}),
  };
}

function source(
  status: MarketplaceSource['status'],
  more: {
    name?: string;
    spec?: Partial<MarketplaceSourceSpec>;
    metadata?: Partial<MarketplaceSource['metadata']>;
  } = {},
): MarketplaceSource {
  const name = more.name ?? 'team';
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      generation: 1,
      creationTimestamp: MADE,
      ...more.metadata,
    },
    spec: { type: 'git', git: { url: 'https://git.example.com/team/skills.git' }, ...more.spec },
    ...(status ? { status: { observedGeneration: 1, ...status } } : {}),
  };
}

const VALID = ['Validated=True Valid: ok', 'Materialized=True Stored: ok'];

/** One Skill of every state. */
export const SKILLS = {
  ready: skill({
    skillName: 'pdf',
    runtime: 'prompt-only',
    tier: 0,
    served: version(),
    conditions: conditions(
      'Ready=True Succeeded: version aaaaaaaaaaaa is served',
      'Serving=True ServingVersion',
      ...VALID,
      'Built=True NotRequired',
      'Registered=True NotRequired',
    ),
  }),
  tier1: skill(
    {
      runtime: 'e2b::python',
      tier: 1,
      templateIDs: { e2b: 'e2b-python' },
      served: version({ runtime: 'e2b::python', engine: 'e2b', templateID: 'e2b-python' }),
      conditions: conditions(
        'Ready=True Succeeded: version aaaaaaaaaaaa is served',
        'Serving=True ServingVersion',
        ...VALID,
        'Built=True NotRequired',
        'Registered=True Registered',
      ),
    },
    { name: 'team.data.report' },
  ),
  invalid: skill(
    {
      runtime: 'prompt-only',
      tier: 0,
      served: version(),
      violations: [
        {
          code: 'NameMismatchesDirectory',
          path: 'SKILL.md',
          line: 2,
          column: 7,
          message: 'name is "odts"',
          hint: 'name: odt',
        },
        { code: 'PathInvalid', path: '', message: 'hostile \u001b[31m text', hint: '' },
      ],
      conditions: conditions(
        'Ready=False Invalid: SKILL.md:2:7: name is "odts"; version aaaaaaaaaaaa stays served',
        'Stalled=True Invalid: x',
        'Serving=True ServingVersion',
        'Validated=False Invalid: SKILL.md:2:7: name is "odts"',
        'Materialized=True Stored',
      ),
    },
    { name: 'team.docs.odt' },
  ),
  building: skill(
    {
      runtime: 'e2b',
      tier: 2,
      candidate: {
        ...version({ runtime: 'e2b', engine: 'e2b' }),
        phase: 'Building',
        attempt: 1,
        jobName: 'sb-0011223344556677-1',
      },
      conditions: conditions(
        'Ready=Unknown Progressing: version aaaaaaaaaaaa is being built',
        'Reconciling=True Progressing',
        'Serving=False NothingServed: none',
        ...VALID,
        'Built=Unknown Progressing: is being built',
        'Registered=Unknown Progressing: comes after the build',
      ),
    },
    { name: 'team.media.ocr' },
  ),
  failed: skill(
    {
      runtime: 'e2b',
      tier: 2,
      candidate: {
        ...version({ runtime: 'e2b', engine: 'e2b' }),
        phase: 'Failed',
        attempt: 1,
        reason: 'BuildCommandFailed',
        message: 'RUN pip install nothing failed with 1',
        logTail: 'ERROR: no such package\u001b[2J\nlast line',
      },
      conditions: conditions(
        'Ready=False BuildCommandFailed: RUN pip install nothing failed with 1',
        'Stalled=True BuildCommandFailed',
        'Serving=False NothingServed: none',
        ...VALID,
        'Built=False BuildCommandFailed: RUN pip install nothing failed with 1',
        'Registered=Unknown Progressing: comes after the build',
      ),
    },
    { name: 'team.media.thumbs' },
  ),
  engineDown: skill(
    {
      runtime: 'e2b',
      tier: 2,
      candidate: {
        ...version({ runtime: 'e2b', engine: 'e2b', image: `registry.example.com/skills/x@sha256:${'c'.repeat(64)}` }),
        phase: 'Registering',
        reason: 'EngineUnavailable',
        message: 'engine unavailable: E2B did not answer',
        retryAt: '2026-03-01T12:01:00Z',
      },
      conditions: conditions(
        'Ready=False EngineUnavailable: engine unavailable: E2B did not answer',
        'Reconciling=True ProgressingWithRetry',
        'Serving=False NothingServed: none',
        ...VALID,
        'Built=True Succeeded',
        'Registered=False EngineUnavailable: engine unavailable: E2B did not answer',
      ),
    },
    { name: 'team.media.audio' },
  ),
  storeDown: skill(
    {
      conditions: conditions(
        'Ready=False StoreUnavailable: no connection to minio:9000',
        'Reconciling=True ProgressingWithRetry',
        'Serving=False NothingServed: none',
        'Validated=True Valid',
        'Materialized=False StoreUnavailable: no connection to minio:9000',
      ),
    },
    { name: 'team.docs.csv' },
  ),
  suspended: skill(
    { conditions: conditions('Ready=False Suspended: spec.suspend is true; set it to false to start') },
    { name: 'team.docs.old', spec: { suspend: true } },
  ),
  pending: skill(undefined, { name: 'team.docs.new' }),
  treeGone: skill(
    {
      served: version(),
      conditions: conditions(
        'Ready=False TreeGone: commit is gone',
        'Stalled=True TreeGone',
        'Serving=True ServingVersion',
        ...VALID,
      ),
    },
    { name: 'team.docs.gone' },
  ),
  held: skill(
    {
      runtime: 'prompt-only',
      tier: 0,
      candidate: { ...version(), phase: 'Held', reason: 'NameConflict', message: 'Skill other.docs.pdf has the name' },
      conditions: conditions(
        'Ready=False NameConflict: Skill other.docs.pdf has the name',
        'Stalled=True NameConflict',
        'Serving=False NothingServed: none',
        ...VALID,
        'Built=True NotRequired',
        'Registered=True NotRequired',
        'NameConflict=True NameConflict',
      ),
    },
    { name: 'team.docs.held' },
  ),
  deleting: skill(
    { served: version(), conditions: conditions('Ready=True Succeeded') },
    { name: 'team.docs.leaves', metadata: { deletionTimestamp: '2026-03-01T11:59:00Z' } },
  ),
} as const;

/** One source of every state. */
export const SOURCES = {
  ready: source({
    revision: `main@sha1:${COMMIT}`,
    skills: { total: 9, ready: 8, invalid: 1, building: 0, failed: 0, waiting: 0 },
    problems: [
      {
        path: 'plugins/docs/skills/note',
        reason: 'SkillMdMissing',
        message: 'plugins/docs/skills/note has no SKILL.md; add one',
      },
    ],
    conditions: conditions('Ready=True Succeeded: 9 Skills applied', 'Fetched=True Succeeded'),
  }),
  unreachable: source(
    {
      conditions: conditions(
        'Ready=False GitUnreachable: no connection\u001b[2Jto git.example.com; retry now: kubectl …',
        'Reconciling=True ProgressingWithRetry',
      ),
    },
    { name: 'down', spec: { ref: { branch: 'release' } } },
  ),
  suspended: source({ conditions: conditions('Ready=True Succeeded') }, { name: 'paused', spec: { suspend: true } }),
} as const;
