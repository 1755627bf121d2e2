import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Skill, SkillStatus, StatusFinding } from '../../../src/api/skill.ts';
import { ignoredFindings } from '../../../src/controllers/skill/ignored.ts';
import { type Evaluated, nextStatus, SKILL_STATUS_FIELDS, trimSkill } from '../../../src/controllers/skill/status.ts';
import { sameFields } from '../../../src/controllers/status-writer.ts';
import type { Slots } from '../../../src/lifecycle/slots.ts';
import type { Finding, Frontmatter } from '../../../src/protocol/types.ts';
import { condition, served, skill } from './objects.ts';

const equal = (current: object, wanted: object) => sameFields(current, wanted, SKILL_STATUS_FIELDS);
const summary = { observedGeneration: 1, conditions: [condition('Ready', 'True', 'Succeeded')] };
const empty: Slots = { retired: [] };
const frontmatter = (name: string): Frontmatter => ({
  name,
  description: `Does ${name}.`,
  runtime: 'prompt-only',
  source: '',
});
const finding = (code: string): Finding => ({ code, path: 'SKILL.md', line: 2, message: `${code}.`, hint: 'Type it.' });
const evaluated = (more: Partial<Evaluated> = {}): Evaluated => ({
  observed: { commit: '1'.repeat(40), tree: '2'.repeat(40), config: 'prompt-only@0' },
  violations: [],
  warnings: [],
  ...more,
});

/** What the cache shows after a status was written. */
const cached = (object: Skill, status: SkillStatus): Skill => trimSkill(structuredClone({ ...object, status }));

const next = (object: Skill, more: Partial<Parameters<typeof nextStatus>[0]> = {}) =>
  nextStatus({ skill: object, slots: empty, summary, ...more }, equal);

describe('nextStatus', () => {
  const a = served('a'.repeat(64));
  const b = served('b'.repeat(64));
  const serving: SkillStatus = { skillName: 'pdf', description: 'Reads.', runtime: 'prompt-only', tier: 0, served: a };

  it('of a first pass is a change, with the card of the content', () => {
    const { status, changed, needsLists } = next(skill('x'), {
      slots: { served: a, retired: [] },
      evaluated: evaluated({ frontmatter: frontmatter('pdf'), digest: a.digest }),
    });
    expect([changed, needsLists]).toEqual([true, false]);
    expect(status).toMatchObject({
      skillName: 'pdf',
      description: 'Does pdf.',
      runtime: 'prompt-only',
      tier: 0,
      served: a,
    });
    expect(Object.keys(status).sort()).not.toContain('trimmed');
  });

  it.each<[string, SkillStatus | undefined, Slots, Evaluated | undefined, string | undefined]>([
    [
      'new content is served: its card',
      serving,
      { served: b, retired: [] },
      evaluated({ frontmatter: frontmatter('new'), digest: b.digest }),
      'new',
    ],
    [
      'new content is not served yet: the card of what is',
      serving,
      { served: a, retired: [] },
      evaluated({ frontmatter: frontmatter('new'), digest: b.digest }),
      'pdf',
    ],
    [
      'nothing is served: the card of the newest valid content',
      undefined,
      empty,
      evaluated({ frontmatter: frontmatter('new'), digest: b.digest }),
      'new',
    ],
    [
      'content turned invalid: the card stays',
      serving,
      { served: a, retired: [] },
      evaluated({ violations: [finding('NameInvalid')] }),
      'pdf',
    ],
    ['nothing was evaluated: the card stays', serving, { served: a, retired: [] }, undefined, 'pdf'],
    [
      'nothing was ever valid: no card',
      undefined,
      empty,
      evaluated({ violations: [finding('NameInvalid')] }),
      undefined,
    ],
  ])('%s', (_, before, slots, found, expected) => {
    const object = before ? cached(skill('x'), before) : skill('x');
    expect(next(object, { slots, evaluated: found }).status.skillName).toBe(expected);
  });

  it('a version that is served later than it was evaluated brings its own card', () => {
    const before = cached(skill('x'), serving);
    const e2b = { ...b, runtime: 'e2b', engine: 'e2b' };
    const slots = { served: e2b, retired: [] };
    const promoted = { ...frontmatter('new'), runtime: 'e2b' } as const;
    expect(next(before, { slots, promoted }).status).toMatchObject({ skillName: 'new', runtime: 'e2b', tier: 2 });
    // Without its frontmatter at least runtime and tier are those of what is served.
    expect(next(before, { slots }).status).toMatchObject({ skillName: 'pdf', runtime: 'e2b', tier: 2 });
  });

  it('names the template of what is served, and of nothing else', () => {
    const tier1 = { ...a, runtime: 'e2b::python', engine: 'e2b', templateID: 'tpl' };
    expect(next(skill('x'), { slots: { served: tier1, retired: [] } }).status.templateIDs).toEqual({ e2b: 'tpl' });
    expect(next(skill('x'), { slots: { served: a, retired: [] } }).status.templateIDs).toBeUndefined();
    expect(next(cached(skill('x'), { templateIDs: { e2b: 'tpl' } })).status.templateIDs).toBeUndefined();
  });

  it('counts all violations and lists the first twenty', () => {
    const violations = Array.from({ length: 30 }, (_, i) => finding(`Code${i}`));
    const { status } = next(skill('x'), { evaluated: evaluated({ violations }) });
    expect([status.violationCount, status.violations?.length]).toEqual([30, 20]);
  });

  it('drops list and count of violations once the content is valid', () => {
    const before = cached(skill('x'), { violations: [finding('A')], violationCount: 1 });
    const { status, changed } = next(before, { evaluated: evaluated({ frontmatter: frontmatter('pdf') }) });
    expect([status.violations, status.violationCount, changed]).toEqual([undefined, undefined, true]);
  });

  it('asks for the lists of the live object when they stand and this pass made none', () => {
    const before = cached(skill('x'), { warnings: [finding('W')] });
    expect(next(before).needsLists).toBe(true);
    expect(next(before, { evaluated: evaluated() }).needsLists).toBe(false);
    expect(next(cached(skill('x'), { skillName: 'x' })).needsLists).toBe(false);
  });

  it('answers the request of this pass and keeps the answer to the one before', () => {
    const before = cached(skill('x'), { lastHandledReconcileAt: 'one', lastHandledRebuild: 'r' });
    expect(next(before, { requestedAt: 'two' }).status).toMatchObject({
      lastHandledReconcileAt: 'two',
      lastHandledRebuild: 'r',
    });
    expect(next(before).status.lastHandledReconcileAt).toBe('one');
  });

  it.each<[string, Partial<Evaluated>, boolean]>([
    ['the same findings', {}, false],
    ['another hint', { violations: [{ ...finding('A'), hint: 'Other.' }] }, true],
    ['another warning', { warnings: [finding('V')] }, true],
    ['no warning', { warnings: [] }, true],
    ['another tree', { observed: { commit: '1'.repeat(40), tree: '9'.repeat(40), config: 'prompt-only@0' } }, true],
  ])('after a write sees a change only where there is one: %s', (_, change, expected) => {
    const first = evaluated({ violations: [finding('A')], warnings: [finding('W')] });
    const written = cached(skill('x'), next(skill('x'), { evaluated: first }).status);
    expect(next(written, { evaluated: { ...first, ...change } }).changed).toBe(expected);
  });

  it('of a written status is the same status: the pass that follows writes nothing', () => {
    const findings = fc.array(fc.constantFrom('A', 'B', 'C').map(finding), { maxLength: 25 });
    const slots = fc.constantFrom<Slots>(
      empty,
      { served: a, retired: [] },
      { served: a, candidate: { ...b, phase: 'Held', reason: 'NameConflict', message: 'held' }, retired: [] },
      { served: b, retired: [{ ...a, state: 'Kept' }] },
    );
    fc.assert(
      fc.property(
        findings,
        findings,
        slots,
        fc.boolean(),
        fc.option(fc.string()),
        (violations, warnings, held, again, requestedAt) => {
          const found = evaluated({
            violations,
            warnings,
            ...(violations.length === 0 ? { frontmatter: frontmatter('pdf'), digest: a.digest } : {}),
          });
          const extra = requestedAt === null ? {} : { requestedAt };
          const first = next(skill('x'), { slots: held, evaluated: found, ...extra });
          const object = cached(skill('x'), first.status);
          const second = next(object, { slots: held, ...(again ? { evaluated: found } : {}), ...extra });
          expect(second.changed).toBe(false);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('warnings of a build', () => {
  const digest = 'a'.repeat(64);
  const ignored = ignoredFindings(['MAINTAINER is deprecated, skipping'], 'e2b');
  const building: Skill = { ...skill('x'), status: { served: served(digest) } };
  const serving: Slots = { served: served(digest), retired: [] };
  const codes = ({ status }: { status: SkillStatus }) => status.warnings?.map(({ code }) => code);

  it('stand in the status until the content moves, beside those of the validation', () => {
    const first = next(building, { slots: serving, ignored });
    expect([first.changed, first.needsLists, codes(first)]).toEqual([true, false, ['DockerfileSyntaxIgnored']]);
    const seen = cached(building, first.status);
    const idle = next(seen, { slots: serving });
    expect([idle.changed, idle.needsLists, codes(idle)]).toEqual([false, false, ['DockerfileSyntaxIgnored']]);
    const again = next(seen, { slots: serving, evaluated: evaluated({ digest, warnings: [finding('FieldUnknown')] }) });
    expect([again.changed, codes(again)]).toEqual([true, ['DockerfileSyntaxIgnored', 'FieldUnknown']]);
    const both = cached(building, again.status);
    const lists = next(both, { slots: serving });
    expect([lists.changed, lists.needsLists]).toEqual([false, true]);
    const moved = next(both, { slots: serving, evaluated: evaluated({ digest: 'b'.repeat(64) }) });
    expect([moved.changed, codes(moved)]).toEqual([true, undefined]);
  });

  it('go with the next build that has none', () => {
    const seen = cached(building, next(building, { slots: serving, ignored }).status);
    const rebuilt = next(seen, { slots: serving, ignored: [] });
    expect([rebuilt.changed, codes(rebuilt)]).toEqual([true, undefined]);
  });
});

describe('trimSkill', () => {
  it('drops the lists and keeps what tells one list from another', () => {
    const list = (code: string): StatusFinding[] => [finding(code)];
    const trimmed = (status: SkillStatus) =>
      cached(skill('x'), status).status as { violations?: unknown; warnings?: unknown; trimmed?: object };
    const [one, same, other] = [list('A'), list('A'), list('B')].map((violations) =>
      trimmed({ violations, warnings: list('W') }),
    );
    expect([one?.violations, one?.warnings]).toEqual([undefined, undefined]);
    expect(one?.trimmed).toEqual(same?.trimmed);
    expect(one?.trimmed).not.toEqual(other?.trimmed);
  });

  it('leaves a Skill without a status alone', () => {
    expect(trimSkill(skill('x'))).toEqual(skill('x'));
  });
});
