import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Base, Summary } from '../../../src/lifecycle/condition.ts';
import { type SkillFacts, summarizeSkill } from '../../../src/lifecycle/skill-summary.ts';
import type { Slots } from '../../../src/lifecycle/slots.ts';
import { type SourceFacts, skillsHealthy, summarizeSource } from '../../../src/lifecycle/source-summary.ts';
import { kstatusOf } from '../../support/kstatus-go.ts';
import { runArgoScript } from '../../support/lua.ts';

/** The scripts as an administrator hands them to Argo CD, run by the interpreter that Argo CD embeds. */
const CONFIG = fileURLToPath(new URL('../../../argocd/argocd-cm.yaml', import.meta.url));
const { data } = parse(readFileSync(CONFIG, 'utf8')) as { data: Record<string, string> };
type Kind = 'MarketplaceSource' | 'Skill';
type Health = { status: string; message: string };

const signal = () => AbortSignal.timeout(60_000);
const healthOf = async (kind: Kind, object: object): Promise<Health> =>
  (await runArgoScript(
    data[`resource.customizations.health.skills.tfrobot.io_${kind}`] ?? '',
    object,
    signal(),
  )) as Health;

/** The same states in the words of kstatus, by which kubectl wait and Flux go. */
const KSTATUS: Record<string, string> = { Healthy: 'Current', Progressing: 'InProgress', Degraded: 'Failed' };
/** Every state that the API server can show: with its default a status is never absent. */
async function agreesWithKstatus(kind: Kind, cases: [string, object | undefined, string, RegExp][]): Promise<void> {
  const shown = cases.filter(([, status]) => status !== undefined);
  const states = await kstatusOf(
    shown.map(([, status]) => object(kind, status)),
    signal(),
  );
  expect(shown.map(([state], i) => [state, states[i]])).toEqual(
    shown.map(([state, , health]) => [state, KSTATUS[health]]),
  );
}

// The first run compiles the interpreter and the library.
beforeAll(async () => {
  await runArgoScript('return {}', {}, AbortSignal.timeout(600_000));
  await kstatusOf([], AbortSignal.timeout(600_000));
}, 900_000);

const NOW = '2026-01-02T03:04:05Z';
const base = (over: Partial<Base> = {}): Base => ({ generation: 3, now: NOW, suspended: false, ...over });
const object = (kind: Kind, status: object | undefined, spec: object = {}, generation = 3) => ({
  apiVersion: 'skills.tfrobot.io/v1alpha1',
  kind,
  metadata: { name: 'team', namespace: 'market', generation },
  spec,
  ...(status ? { status } : {}),
});

const VERSION = {
  version: '6aa2af98271e',
  digest: '6'.repeat(64),
  manifestSHA256: 'a'.repeat(64),
  commit: 'c'.repeat(40),
  runtime: 'prompt-only',
  files: 1,
  bytes: 10,
};
const skill = (over: Partial<SkillFacts>): Summary =>
  summarizeSkill({
    ...base(),
    slots: { retired: [] } as unknown as Slots,
    outcome: { kind: 'Done' },
    ownGit: false,
    passed: {},
    ...over,
  });
const slots = (over: object): Slots => ({ retired: [], ...over }) as unknown as Slots;
const candidate = (over: object) =>
  slots({ served: VERSION, candidate: { ...VERSION, version: '09c7b35ba093', attempt: 0, ...over } });
const failed = (
  policy: 'Stalled' | 'Waiting' | 'Retry',
  reason: 'AuthenticationFailed' | 'URLInvalid',
  message: string,
) => ({ kind: 'Failed', policy, reason, message, step: 'Fetched' }) as const;

describe('the health of a Skill', () => {
  const cases: [state: string, status: object | undefined, health: string, message: RegExp][] = [
    ['new', undefined, 'Progressing', /waiting for skill-operator/],
    [
      'created, with the default of its status',
      { observedGeneration: -1 },
      'Progressing',
      /waiting for skill-operator/,
    ],
    [
      'being fetched',
      skill({ outcome: { kind: 'Progressing', message: 'reading the tree' } }),
      'Progressing',
      /reading the tree/,
    ],
    ['served', skill({ slots: slots({ served: VERSION }) }), 'Healthy', /^version 6aa2af98271e is served$/],
    [
      'invalid while the old version stays',
      skill({ slots: slots({ served: VERSION }), invalid: 'SKILL.md:3:14: no description' }),
      'Degraded',
      /^Invalid: SKILL\.md:3:14/,
    ],
    ['queued', skill({ slots: candidate({ phase: 'Queued' }) }), 'Progressing', /waits for its build/],
    ['building', skill({ slots: candidate({ phase: 'Building' }) }), 'Progressing', /is being built/],
    ['registering', skill({ slots: candidate({ phase: 'Registering' }) }), 'Progressing', /is being registered/],
    [
      'building again after an interruption',
      skill({
        slots: candidate({
          phase: 'Building',
          reason: 'BuildInterrupted',
          message: 'the node went away',
          retryAt: NOW,
        }),
      }),
      'Progressing',
      /BuildInterrupted: the node went away/,
    ],
    [
      'failed',
      skill({ slots: candidate({ phase: 'Failed', reason: 'BuildCommandFailed', message: 'RUN false ended with 1' }) }),
      'Degraded',
      /^BuildCommandFailed: RUN false/,
    ],
    [
      'held by a name',
      skill({ slots: candidate({ phase: 'Held', reason: 'NameConflict', message: 'pdf is served by team.docs.pdf' }) }),
      'Degraded',
      /^NameConflict/,
    ],
    [
      'without builds',
      skill({ slots: candidate({ phase: 'Queued', reason: 'BuildNotConfigured', message: 'builds are off' }) }),
      'Degraded',
      /^BuildNotConfigured/,
    ],
    [
      'lost',
      skill({ slots: slots({ served: VERSION }), packageLost: 'the package is gone' }),
      'Degraded',
      /^PackageLost/,
    ],
    [
      'without its template',
      skill({ slots: slots({ served: VERSION }), templateUnknown: 'e2b does not know x' }),
      'Degraded',
      /^TemplateNotFound/,
    ],
    [
      'waiting for a Secret',
      skill({ ownGit: true, outcome: failed('Waiting', 'AuthenticationFailed', 'the key is refused') }),
      'Progressing',
      /^AuthenticationFailed: the key is refused/,
    ],
    [
      'with a URL that cannot be',
      skill({ ownGit: true, outcome: failed('Stalled', 'URLInvalid', 'not a URL') }),
      'Degraded',
      /^URLInvalid/,
    ],
  ];
  test.each(cases)('that is %s', async (_state, status, health, message) => {
    const found = await healthOf('Skill', object('Skill', status));
    expect(found.status).toBe(health);
    expect(found.message).toMatch(message);
  });

  test('is the one that the kstatus library sees', () => agreesWithKstatus('Skill', cases));

  test('is Progressing while the status is about an older generation', async () => {
    const status = skill({ slots: slots({ served: VERSION }) });
    expect((await healthOf('Skill', object('Skill', status, {}, 4))).status).toBe('Progressing');
  });
  test('is Suspended, also before anything was served', async () => {
    const status = skill({ suspended: true });
    expect(await healthOf('Skill', object('Skill', status, { suspend: true }))).toEqual({
      status: 'Suspended',
      message: 'spec.suspend is true',
    });
  });
});

const source = (over: Partial<SourceFacts>): Summary =>
  summarizeSource({ ...base(), outcome: { kind: 'Done' }, fetched: 'main@sha1:abc', applied: 4, problems: 0, ...over });
const counts = { total: 4, ready: 3, invalid: 1, building: 0, failed: 0, waiting: 0 };
const withHealthOfSkills = (summary: Summary) => ({
  ...summary,
  conditions: [...summary.conditions, skillsHealthy(counts, { namespace: 'market', name: 'team' }, undefined, NOW)],
});

describe('the health of a MarketplaceSource', () => {
  const cases: [state: string, status: object | undefined, health: string, message: RegExp][] = [
    ['new', { observedGeneration: -1 }, 'Progressing', /waiting for skill-operator/],
    ['being fetched', source({ outcome: { kind: 'Progressing', message: 'fetching' } }), 'Progressing', /fetching/],
    ['applied', source({}), 'Healthy', /^main@sha1:abc: 4 skills applied$/],
    [
      'applied with one bad skill',
      withHealthOfSkills(source({})),
      'Healthy',
      /4 skills applied; 1 of 4 skills not ready: 1 invalid/,
    ],
    ['holding back a prune', source({ pruneBlocked: '9 of 10 skills vanished' }), 'Healthy', /9 of 10 skills vanished/],
    [
      'refused by Git',
      source({ outcome: failed('Waiting', 'AuthenticationFailed', 'the key is refused') }),
      'Progressing',
      /^AuthenticationFailed/,
    ],
    [
      'unreachable',
      source({
        outcome: { ...failed('Retry', 'AuthenticationFailed', ''), reason: 'GitUnreachable', message: 'no route' },
      }),
      'Progressing',
      /^GitUnreachable: no route/,
    ],
    ['wrong', source({ outcome: failed('Stalled', 'URLInvalid', 'not a URL') }), 'Degraded', /^URLInvalid: not a URL/],
  ];
  test.each(cases)('that is %s', async (_state, status, health, message) => {
    const found = await healthOf('MarketplaceSource', object('MarketplaceSource', status));
    expect(found.status).toBe(health);
    expect(found.message).toMatch(message);
  });
  test('is the one that the kstatus library sees', () => agreesWithKstatus('MarketplaceSource', cases));
  test('is Suspended', async () => {
    const found = await healthOf(
      'MarketplaceSource',
      object('MarketplaceSource', source({ suspended: true }), { suspend: true }),
    );
    expect(found.status).toBe('Suspended');
  });
});
