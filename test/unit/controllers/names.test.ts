import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../src/api/labels.ts';
import type { Skill, SkillStatus } from '../../../src/api/skill.ts';
import { BY_NAME, decideName, Names, nameFacts, nameKey } from '../../../src/controllers/skill/names.ts';
import { Cache } from '../../../src/kube/store.ts';
import { condition, served, skill } from './objects.ts';

type Contender = Parameters<typeof decideName>[0];

const one = (name: string, more: Partial<Contender> = {}): Contender => ({
  name,
  created: `2026-01-01T00:00:0${name.charCodeAt(0) - 97}Z`,
  serves: false,
  content: 'valid',
  ...more,
});

describe('decideName', () => {
  const serves = { serves: true };
  const invalid = { content: 'invalid' } as const;
  const unknown = { content: 'unknown' } as const;
  const same = { created: '2026-01-01T00:00:00Z' };
  it.each<[string, Contender, Contender[], string]>([
    ['alone', one('a'), [], 'free'],
    ['the oldest of the valid ones', one('a'), [one('b'), one('c')], 'free'],
    ['a younger valid one', one('b'), [one('a'), one('c')], 'taken by a'],
    ['the youngest of three', one('c'), [one('b'), one('a')], 'taken by a'],
    ['an older one is invalid', one('b'), [one('a', invalid)], 'free'],
    ['an older one is not validated yet', one('b'), [one('a', unknown)], 'wait behind a'],
    ['the oldest is invalid, the next is valid', one('c'), [one('a', invalid), one('b')], 'taken by b'],
    ['the oldest is unknown, the next is valid', one('c'), [one('b'), one('a', unknown)], 'wait behind a'],
    ['a younger one is not validated yet', one('a'), [one('b', unknown)], 'free'],
    ['itself is not validated yet and the oldest', one('a', unknown), [one('b')], 'free'],
    ['a younger one serves', one('a'), [one('b', serves)], 'taken by b'],
    ['a younger invalid one serves', one('a'), [one('b', { ...serves, ...invalid })], 'taken by b'],
    ['it serves, an older one does not', one('b', serves), [one('a')], 'free'],
    ['it serves, an older one serves too', one('b', serves), [one('a', serves)], 'taken by a'],
    ['it serves, a younger one serves too', one('a', serves), [one('b', serves)], 'free'],
    ['two serve, it does not', one('c'), [one('b', serves), one('a', serves)], 'taken by a'],
    ['equal age, smaller name', one('a', same), [one('b', same)], 'free'],
    ['equal age, larger name', one('b', same), [one('a', same)], 'taken by a'],
    ['the holder hands over to it', one('b'), [one('a', { ...serves, handover: 'b' })], 'free'],
    ['the holder hands over to another', one('b'), [one('a', { ...serves, handover: 'x' })], 'taken by a'],
    [
      'handed over, but an older valid one waits too',
      one('c'),
      [one('a', { ...serves, handover: 'c' }), one('b')],
      'taken by b',
    ],
  ])('%s', (_, self, peers, expected) => {
    const verdict = decideName(self, peers);
    const text = { free: 'free', taken: 'taken by', wait: 'wait behind' }[verdict.kind];
    const who = 'holder' in verdict ? verdict.holder : 'behind' in verdict ? verdict.behind : '';
    expect(`${text} ${who}`.trim()).toBe(expected);
  });

  const contenders = fc.uniqueArray(
    fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      created: fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z'),
      serves: fc.boolean(),
      content: fc.constantFrom('valid' as const, 'invalid' as const, 'unknown' as const),
    }),
    { selector: ({ name }) => name, minLength: 1, maxLength: 5 },
  );

  it('lets at most one of those that could serve have the name, whatever the order', () => {
    fc.assert(
      fc.property(contenders, fc.nat(), (all, turn) => {
        const rotated = [...all.slice(turn % all.length), ...all.slice(0, turn % all.length)];
        const verdicts = (list: Contender[]) =>
          list.map(
            (self) =>
              [
                self,
                decideName(
                  self,
                  list.filter((peer) => peer !== self),
                ),
              ] as const,
          );
        const free = verdicts(all).filter(
          ([self, { kind }]) => kind === 'free' && (self.serves || self.content === 'valid'),
        );
        expect(free.length).toBeLessThanOrEqual(1);
        const named = (list: Contender[]) => new Map(verdicts(list).map(([{ name }, verdict]) => [name, verdict]));
        for (const [name, verdict] of named(all)) expect(named(rotated).get(name)).toEqual(verdict);
      }),
      { numRuns: 500 },
    );
  });

  it('gives the name to exactly one of valid Skills, so that nobody waits for ever', () => {
    fc.assert(
      fc.property(contenders, (all) => {
        const known = all.map((item) => ({
          ...item,
          content: item.content === 'unknown' ? ('invalid' as const) : item.content,
        }));
        const able = known.filter((self) => self.serves || self.content === 'valid');
        fc.pre(able.length > 0);
        const free = able.filter(
          (self) =>
            decideName(
              self,
              known.filter((peer) => peer !== self),
            ).kind === 'free',
        );
        expect(free).toHaveLength(1);
      }),
      { numRuns: 500 },
    );
  });
});

const validated: SkillStatus = { conditions: [condition('Validated', 'True', 'Valid')] };
const failed: SkillStatus = { conditions: [condition('Ready', 'False', 'GitUnreachable')] };
const younger = { creationTimestamp: '2026-01-02T00:00:00Z' };

function cacheOf(...skills: Skill[]): Cache<Skill> {
  const cache = new Cache<Skill>({ indexes: { [BY_NAME]: (object) => [nameKey(object)] } });
  for (const [i, object] of skills.entries()) {
    cache.put({ ...object, metadata: { ...object.metadata, resourceVersion: String(i + 1) } }, 'live');
  }
  return cache;
}

describe('Names', () => {
  const self = skill('young', {}, younger);
  it.each<[string, Skill, string]>([
    ['an older Skill without a status is waited for', skill('old'), 'wait'],
    ['an older valid Skill holds the name', skill('old', {}, {}, validated), 'taken'],
    ['an older Skill that could not be read holds nobody up', skill('old', {}, {}, failed), 'free'],
    ['an older suspended Skill without a status holds nobody up', skill('old', { suspend: true }), 'free'],
    ['a Skill that serves holds the name', skill('old', {}, {}, { ...failed, served: served() }), 'taken'],
    [
      'a Skill that is being deleted does not',
      skill('old', {}, { deletionTimestamp: '2026-01-03T00:00:00Z' }, { ...validated, served: served() }),
      'free',
    ],
    ['a Skill of another namespace does not', skill('old', {}, { namespace: 'other' }, validated), 'free'],
    ['a Skill of another directory does not', skill('old', { path: 'plugins/docs/skills/odt' }, {}, validated), 'free'],
    [
      'a Skill in another plugin does',
      skill('old', { plugin: 'x', path: 'plugins/x/skills/pdf' }, {}, validated),
      'taken',
    ],
    [
      'a Skill that hands over to it does not',
      skill('old', {}, { annotations: { [ANNOTATIONS.handover]: 'young' } }, { ...validated, served: served() }),
      'free',
    ],
  ])('%s', (_, peer, expected) => {
    expect(new Names(cacheOf(self, peer)).verdict(self).kind).toBe(expected);
  });

  it('holds a claimed name against older peers until it is released', () => {
    const old = skill('old', {}, {}, validated);
    const names = new Names(cacheOf(self, old));
    names.claim(self);
    expect(names.verdict(old)).toEqual({ kind: 'taken', holder: 'young' });
    names.release(old);
    expect(names.verdict(old).kind).toBe('taken');
    names.release(self);
    expect(names.verdict(old).kind).toBe('free');
  });

  it('gives a claim up once the cache shows the Skill serving, and not before', () => {
    const old = skill('old', {}, {}, validated);
    const names = new Names(cacheOf(self, old));
    names.claim(self);
    names.settle({ ...self, status: validated });
    expect(names.verdict(old).kind).toBe('taken');
    names.settle({ ...self, status: { ...validated, served: served() } });
    expect(names.verdict(old).kind).toBe('free');
  });
});

describe('nameFacts', () => {
  const base = skill('a', {}, {}, validated);
  it.each<[string, Skill | undefined]>([
    ['it is gone', undefined],
    ['it serves', { ...base, status: { ...validated, served: served() } }],
    ['its content turned invalid', { ...base, status: { conditions: [condition('Validated', 'False', 'Invalid')] } }],
    ['it is being deleted', skill('a', {}, { deletionTimestamp: '2026-01-03T00:00:00Z' }, validated)],
    ['it hands its name over', skill('a', {}, { annotations: { [ANNOTATIONS.handover]: 'b' } }, validated)],
    ['another object has its name', skill('a', {}, { uid: 'other' }, validated)],
    ['its directory has another name', skill('a', { path: 'plugins/docs/skills/x' }, {}, validated)],
  ])('differ when %s', (_, changed) => {
    expect(nameFacts(changed)).not.toBe(nameFacts(base));
  });

  it('are equal when only a message or the served version moved', () => {
    const now = { ...validated, served: served() };
    const later = {
      conditions: [condition('Validated', 'True', 'Valid', 'other words')],
      served: served('d'.repeat(64)),
    };
    expect(nameFacts({ ...base, status: later })).toBe(nameFacts({ ...base, status: now }));
  });
});
