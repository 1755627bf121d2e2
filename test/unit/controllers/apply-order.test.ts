import { expect, test } from 'vitest';
import { inNameOrder } from '../../../src/controllers/marketplacesource/apply.ts';
import type { DesiredSkill } from '../../../src/controllers/marketplacesource/plan.ts';

const skill = (plugin: string, directory: string): DesiredSkill => ({
  name: `team.${plugin}.${directory}`,
  path: `plugins/${plugin}/skills/${directory}`,
  spec: { source: {}, plugin, path: `plugins/${plugin}/skills/${directory}` },
  labels: {},
});

test('Skills of one bare name are applied one after the other, the smaller object name first', () => {
  const skills = [skill('zeta', 'pdf'), skill('docs', 'csv'), skill('alpha', 'pdf'), skill('docs', 'pdf')];
  expect(inNameOrder(skills).map((group) => group.map(({ name }) => name))).toEqual([
    ['team.alpha.pdf', 'team.docs.pdf', 'team.zeta.pdf'],
    ['team.docs.csv'],
  ]);
});
