import { describe, expect, test } from 'vitest';
import type { SkillStatus } from '../../../src/api/skill.ts';
import { retry, waiting } from '../../../src/base/errors.ts';
import type { Reason } from '../../../src/base/reasons.ts';
import { Health } from '../../../src/controllers/health.ts';
import { packageLost } from '../../../src/controllers/skill/lost.ts';
import { templateUnknown } from '../../../src/controllers/skill/template.ts';
import { expectedPackages } from '../../../src/controllers/sweep/heal.ts';
import { ledgerWaitMs } from '../../../src/controllers/sweep/ledger-worker.ts';
import {
  addReferences,
  imageOf,
  isReferenced,
  noReferences,
  templateClaim,
} from '../../../src/controllers/sweep/references.ts';
import { servedTemplates } from '../../../src/controllers/sweep/templates.ts';
import { slotsOf } from '../../../src/lifecycle/slots.ts';
import { packageThing } from '../../../src/store/sweep.ts';
import { condition, served, skill } from './objects.ts';

const [A, B, C, D] = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(64)) as [string, string, string, string];
const image = (seed: string) => `registry.example/skills/ns/pdf-e2b@sha256:${seed}`;
const own = (digest: string, templateID?: string) => ({
  ...served(digest),
  runtime: 'e2b',
  engine: 'e2b',
  image: image(digest),
  ...(templateID ? { templateID } : {}),
});
const withStatus = (status: SkillStatus, name = 'pdf') => skill(name, {}, {}, status);

const FULL = withStatus({
  served: own(A, 'tpl-a'),
  candidate: { ...own(B), phase: 'Building', buildID: C },
  retired: [{ ...own(D, 'tpl-d'), state: 'Deleting' }],
});

describe('what a Skill names', () => {
  const references = noReferences();
  addReferences(references, FULL);
  addReferences(references, withStatus({}, 'empty'));

  test('is the packages of all its slots', () => {
    expect([...references.packages]).toEqual([A, B, D].map((digest) => packageThing('ns', digest)));
    expect(references.skills).toBe(2);
  });
  test('is its images and templates, by which a removal knows that they have an owner', () => {
    expect([...references.claims].sort()).toEqual(
      [image(A), image(B), image(D), templateClaim('e2b', 'tpl-a'), templateClaim('e2b', 'tpl-d')].sort(),
    );
  });
  test.each<[string, string, string | undefined, boolean]>([
    ['the package of a slot', packageThing('ns', B), undefined, true],
    ['the same package in another namespace', packageThing('other', B), undefined, false],
    ['the record of an image in a slot', `images/ns/pdf-e2b/${B}.json`, `sha256:${A}`, true],
    ['a record of an image in no slot', `images/ns/pdf-e2b/${B}.json`, `sha256:${C}`, false],
    ['the record of the build under way', `images/ns/pdf-e2b/${C}.json`, undefined, true],
    ['the same image of another Skill', `images/ns/odt-e2b/${B}.json`, `sha256:${A}`, false],
    ['the same image for another engine', `images/ns/pdf-cubesandbox/${B}.json`, `sha256:${A}`, false],
    ['a record that cannot be read', `images/ns/pdf-e2b/${B}.json`, undefined, false],
  ])('%s is named or not', (_title, thing, digest, named) => {
    expect(isReferenced(references, thing, digest)).toBe(named);
  });
  test('an image is spelled the same from its record', () => {
    expect(imageOf(`images/ns/pdf-e2b/${B}.json`, `sha256:${A}`)).toBe(`ns/pdf-e2b@sha256:${A}`);
    expect(imageOf(`images/ns/pdf-e2b/${B}.json`, undefined)).toBeUndefined();
    expect(imageOf(packageThing('ns', A), `sha256:${A}`)).toBeUndefined();
  });
});

describe('heal', () => {
  test('expects every package once, with those who serve it or will, and the Dockerfile where an image is built', () => {
    const kept = withStatus({ served: served(A), retired: [{ ...served(B), state: 'Kept' }] }, 'kept');
    const twins = ['x', 'y'].map((name) => withStatus({ served: served(C) }, name));
    const seen = (skills: Parameters<typeof expectedPackages>[0]) =>
      [...expectedPackages(skills)].map(([thing, { hasDockerfile, keys }]) => [thing.slice(-2), hasDockerfile, keys]);
    expect(seen([FULL, ...twins])).toEqual([
      ['aa', true, ['ns/pdf']],
      ['bb', true, ['ns/pdf']],
      ['cc', false, ['ns/x', 'ns/y']],
    ]);
    // A replaced version is only stored again when Git returns to it.
    expect(seen([kept])).toEqual([
      ['aa', false, ['ns/kept']],
      ['bb', false, []],
    ]);
  });

  test('does not try again for a Skill that says already that its package is lost', () => {
    const says = [condition('Serving', 'False', 'PackageLost')];
    const candidate = { ...served(B), phase: 'Queued' as const };
    const expected = expectedPackages([withStatus({ served: served(A), candidate, conditions: says })]);
    expect([...expected.values()].map(({ keys }) => keys)).toEqual([[], ['ns/pdf']]);
  });

  test('asks an engine for the templates that are served from it and were made by the operator', () => {
    const deleted = skill('gone', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }, { served: own(A, 'tpl-gone') });
    const platform = withStatus({
      served: { ...served(A), runtime: 'e2b::python', engine: 'e2b', templateID: 'base' },
    });
    const cube = withStatus({ served: { ...own(A, 'tpl-c'), runtime: 'cubesandbox', engine: 'cubesandbox' } });
    expect([...servedTemplates([FULL, deleted, platform, cube, withStatus({})], 'e2b')]).toEqual([['tpl-a', 'ns/pdf']]);
  });

  test('a ledger entry is tried after one minute, then ever later, at last every six hours', () => {
    const minutes = [0, 1, 2, 5, 8, 9, 100, 2_000].map((failures) => ledgerWaitMs(failures) / 60_000);
    expect(minutes).toEqual([1, 2, 4, 32, 256, 360, 360, 360]);
  });
});

describe('PackageLost', () => {
  const says = condition('Serving', 'False', 'PackageLost');
  const gone = (reason: Reason) => waiting(reason, 'no');
  const thing = packageThing('ns', A);
  const lost = (
    state: 'lost' | 'whole' | undefined,
    { said = false, verifying = true, failure = undefined as ReturnType<typeof waiting> | undefined } = {},
  ): boolean => {
    const health = new Health();
    if (state) health.learn(thing, state);
    const subject = withStatus({ served: served(A), conditions: said ? [says] : [] });
    return packageLost({ skill: subject, slots: slotsOf(subject), verifying }, health, failure) !== undefined;
  };
  test.each<[string, boolean, boolean]>([
    ['nothing is known', lost(undefined), false],
    ['it is missing and the pass could not bring it back', lost('lost'), true],
    ['the pass stored it again', lost('whole'), false],
    ['a pass that did not look at the store', lost('lost', { verifying: false }), false],
    [
      'Git does not answer: nobody knows what it offers',
      lost('lost', { failure: retry('GitUnreachable', 'no') }),
      false,
    ],
    ['the commit is gone for good', lost('lost', { failure: gone('TreeGone') }), true],
    ['the source is gone', lost('lost', { failure: gone('SourceNotFound') }), true],
    ['the status says so and nothing new is known, as after a restart', lost(undefined, { said: true }), true],
    ['the status says so and Git does not answer', lost('lost', { said: true, failure: gone('GitTimeout') }), true],
    ['the status says so and the bucket was restored', lost('whole', { said: true }), false],
  ])('%s', (_title, is, expected) => {
    expect(is).toBe(expected);
  });
  test('is said of the served version alone', () => {
    const health = new Health();
    health.learn(thing, 'lost');
    const subject = withStatus({ candidate: { ...served(A), phase: 'Held' } });
    expect(packageLost({ skill: subject, slots: slotsOf(subject), verifying: true }, health)).toBeUndefined();
    // What was said of the old version does not hold for the new one.
    const before = withStatus({ served: served(A), conditions: [says] });
    const slots = { served: served(B), retired: [] };
    expect(packageLost({ skill: before, slots, verifying: false }, health)).toBeUndefined();
  });
  test('says what to do', () => {
    const health = new Health();
    health.learn(thing, 'lost');
    const subject = withStatus({ served: served(A) });
    expect(packageLost({ skill: subject, slots: slotsOf(subject), verifying: true }, health)).toMatchInlineSnapshot(
      `"the package of version aaaaaaaaaaaa is no longer in the bucket and Git does not offer its content; push the content of commit cccccccccccccccccccccccccccccccccccccccc again, or restore the bucket from its backup"`,
    );
  });
});

describe('TemplateNotFound of a platform template', () => {
  const status = { served: { ...served(A), runtime: 'e2b::python', engine: 'e2b', templateID: 'e2b-python' } };
  const subject = withStatus(status);
  const ask = (known: boolean | undefined, of = subject) => {
    const health = new Health();
    if (known !== undefined) health.setPlatform(templateClaim('e2b', 'e2b-python'), known);
    return templateUnknown(of, slotsOf(of), health);
  };
  const message = ask(false) as string;
  test('says what to do', () => {
    expect(message).toMatchInlineSnapshot(
      `"E2B does not know the template e2b-python of runtime e2b::python; register it there, or correct the entry of e2b::python in the map of platform templates"`,
    );
  });
  const said = (text: string) =>
    withStatus({ ...status, conditions: [condition('Registered', 'False', 'TemplateNotFound', text)] });
  test.each<[string, string | undefined, string | undefined]>([
    ['the engine knows it', ask(true), undefined],
    ['nobody asked yet', ask(undefined), undefined],
    ['nobody asked yet and the status says so', ask(undefined, said(message)), message],
    ['nobody asked yet and the status speaks of another template', ask(undefined, said('E2B and old-id')), undefined],
    ['the engine knows it again', ask(true, said(message)), undefined],
    ['the runtime needs none', ask(false, withStatus({ served: served(A) })), undefined],
    ['the image is its own', ask(false, withStatus({ served: own(A, 'e2b-python') })), undefined],
  ])('%s', (_title, is, expected) => {
    expect(is).toBe(expected);
  });
});

test('a listing replaces what was known of packages, and an engine says what changed', () => {
  const health = new Health();
  health.learn('packages/ns/x', 'whole');
  health.setLost(['packages/ns/y']);
  expect([health.packageState('packages/ns/x'), health.packageState('packages/ns/y')]).toEqual([undefined, 'lost']);
  const answers = [true, true, false, false, true].map((known) => health.setPlatform('e2b/base', known));
  expect(answers).toEqual([true, false, true, false, true]);
});
