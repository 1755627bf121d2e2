import { expect, test } from 'vitest';
import type { Skill } from '../../../src/api/skill.ts';
import { type Asked, hasOwnImage, skillsStanding, standingOf } from '../../../src/cli/cluster/settled.ts';
import { stateOf } from '../../../src/cli/cluster/state.ts';
import { SKILLS, SOURCES } from './objects.ts';

const asked: Asked = { by: 'requestedAt', value: 'now' };
const answered = (skill: Skill, field = 'lastHandledReconcileAt'): Skill => ({
  ...skill,
  status: { ...skill.status, [field]: 'now' },
});
const standing = (object: Skill, by: Asked['by'] = 'requestedAt') => {
  const { done, state } = standingOf({ kind: 'skill', object }, { by, value: 'now' });
  return `${done ? 'done' : 'going'} ${state.word}`;
};

test.each([
  ['ready', 'done Ready'],
  ['invalid', 'done Invalid'],
  ['building', 'going Building'],
  ['failed', 'done Failed'],
  ['engineDown', 'done Waiting'],
  ['suspended', 'done Suspended'],
  ['deleting', 'done Deleting'],
  ['pending', 'going Pending'],
] as const)('an answered request to a Skill that is %s is %s', (name, expected) => {
  expect(standing(answered(SKILLS[name]))).toBe(expected);
});

test('nothing is done before the answer, and the answer to another request does not count', () => {
  expect(standing(SKILLS.ready)).toBe('going Ready');
  expect(standing(answered(SKILLS.ready), 'rebuild')).toBe('going Ready');
  expect(standing(answered(SKILLS.failed, 'lastHandledRebuild'), 'rebuild')).toBe('done Failed');
  expect(standingOf({ kind: 'source', object: SOURCES.ready }, asked).done).toBe(false);
});

test('a spec that the operator has not seen is Pending, unless a failure was computed for it', () => {
  const newer = (skill: Skill): Skill => ({ ...skill, metadata: { ...skill.metadata, generation: 2 } });
  expect(stateOf(newer(SKILLS.ready)).word).toBe('Pending');
  const seen = { ...newer(SKILLS.storeDown), status: { ...SKILLS.storeDown.status } };
  seen.status.conditions = (seen.status.conditions ?? []).map((one) => ({ ...one, observedGeneration: 2 }));
  expect(stateOf(seen).word).toBe('Waiting');
});

test('Skills that move, and Skills that need a change', () => {
  const { moving, bad } = skillsStanding(Object.values(SKILLS));
  const names = (skills: Skill[]) => skills.map(({ metadata }) => metadata.name.split('.').at(-1));
  expect(names(moving)).toEqual(['ocr', 'audio', 'csv', 'new']);
  expect(names(bad)).toEqual(['odt', 'thumbs', 'gone', 'held']);
});

test('only Skills with an image of their own can be rebuilt', () => {
  const own = Object.entries(SKILLS).filter(([, skill]) => hasOwnImage(skill));
  expect(own.map(([name]) => name)).toEqual(['building', 'failed', 'engineDown']);
});
