import { expect, test } from 'vitest';
import { isClean, joinPath, summaryOf } from '../../../src/cli/result.ts';
import { CLEAN, RESULT } from './fixture.ts';

test.each([
  [['market', 'plugins/a', 'SKILL.md'], 'market/plugins/a/SKILL.md'],
  [['.', 'plugins/a', 'SKILL.md'], 'plugins/a/SKILL.md'],
  [['.', '.', 'SKILL.md'], 'SKILL.md'],
  [['.', '.', ''], '.'],
  [['./market/', '.', ''], 'market'],
  [['/srv/market', 'a'], '/srv/market/a'],
  [['/', 'a'], '/a'],
  [['/', '.'], '/'],
  [['../other', '.', 'x'], '../other/x'],
])('joinPath(%j) is %j', (pieces, expected) => {
  expect(joinPath(...pieces)).toBe(expected);
});

test('the summary counts skills, errors (layout problems too) and warnings', () => {
  expect(summaryOf(RESULT)).toBe('2 skills: 1 valid, 1 invalid (4 errors, 1 warning)');
  expect(summaryOf(CLEAN)).toBe('1 skill: 1 valid, 0 invalid (0 errors, 0 warnings)');
  expect(summaryOf({ skills: [], problems: [] })).toBe('0 skills: 0 valid, 0 invalid (0 errors, 0 warnings)');
});

test('clean means no invalid skill and no layout problem; warnings are allowed', () => {
  expect(isClean(CLEAN)).toBe(true);
  expect(isClean(RESULT)).toBe(false);
  expect(isClean({ skills: CLEAN.skills, problems: RESULT.problems })).toBe(false);
  const warned = CLEAN.skills.map((skill) => ({ ...skill, warnings: RESULT.skills[0]?.warnings ?? [] }));
  expect(isClean({ skills: warned, problems: [] })).toBe(true);
});
