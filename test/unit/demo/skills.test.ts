import { describe, expect, test } from 'vitest';
import {
  BROKEN_ON_PURPOSE,
  checkExamples,
  countLine,
  type SkillView,
  skillTable,
  viewOf,
} from '../../../scripts/lib/demo/skills.ts';
import type { K8sObject } from '../../support/k8s.ts';

interface Given {
  ready?: 'True' | 'False' | 'Unknown';
  reason?: string;
  reconciling?: boolean;
  behind?: boolean;
  status?: Record<string, unknown>;
}

function skill(name: string, given: Given = {}): K8sObject {
  const { ready = 'True', reason = 'Succeeded', reconciling = false, behind = false, status } = given;
  const [plugin = '', directory = ''] = name.split('/');
  const also = reconciling
    ? [{ type: 'Reconciling', status: 'True', reason: 'ProgressingWithRetry', message: '' }]
    : [];
  return {
    apiVersion: 'skills.tfrobot.io/v1alpha1',
    kind: 'Skill',
    metadata: { name, generation: 2 },
    spec: { plugin, path: `plugins/${plugin}/skills/${directory}` },
    status: {
      observedGeneration: behind ? 1 : 2,
      conditions: [{ type: 'Ready', status: ready, reason, message: `says ${reason}` }, ...also],
      ...status,
    },
  };
}

const served = { version: '0123456789ab', digest: 'd', manifestSHA256: 'm', templateID: 'tpl' };
const plain = { rows: 9, width: 90, paint: (_: string, text: string) => text };

describe('viewOf', () => {
  test.each<[string, Given, Partial<SkillView>]>([
    ['Ready', {}, { ready: true, settled: true }],
    ['Ready for an older spec', { behind: true }, { ready: false, settled: false }],
    ['Unknown', { ready: 'Unknown', reason: 'Progressing' }, { ready: false, settled: false }],
    ['Invalid', { ready: 'False', reason: 'Invalid' }, { ready: false, settled: true, reason: 'Invalid' }],
    ['tried again', { ready: 'False', reconciling: true }, { ready: false, settled: false }],
    ['served', { status: { served, candidate: undefined } }, { served, stored: served }],
    ['waiting for its build', { status: { candidate: served } }, { served: undefined, stored: served }],
  ])('reads a Skill that is %s', (_, given, expected) => {
    expect(viewOf(skill('a/b', given))).toMatchObject({ name: 'a/b', ...expected });
  });
  test('reads a Skill without a status', () => {
    const { status: _, ...bare } = skill('a/b');
    expect(viewOf(bare as K8sObject)).toMatchObject({ ready: false, settled: false, message: '' });
  });
});

describe('the table of Skills', () => {
  const views = [
    viewOf(skill('docs/pdf', { status: { served, runtime: 'e2b::python' } })),
    viewOf(skill('docs/long-name-of-a-skill', { ready: 'False', reason: 'Invalid' })),
    viewOf(skill('a/own', { ready: 'False', reason: 'BuildNotConfigured', status: { runtime: 'e2b' } })),
    viewOf(skill('a/new', { ready: 'Unknown', reason: 'Progressing' })),
  ];
  test('has aligned columns', () => {
    expect(skillTable(views, plain).join('\n')).toMatchInlineSnapshot(`
      "SKILL                      RUNTIME      VERSION       TEMPLATE  STATE
      docs/pdf                   e2b::python  0123456789ab  tpl       Ready
      docs/long-name-of-a-skill  -            -             -         Invalid
      a/own                      e2b          -             -         BuildNotConfigured
      a/new                      -            -             -         …"
    `);
  });
  test('shows those that are not Ready first when there are too many, and says how many it leaves out', () => {
    expect(skillTable(views, { ...plain, rows: 3 }).join('\n')).toMatchInlineSnapshot(`
      "SKILL                      RUNTIME  VERSION  TEMPLATE  STATE
      docs/long-name-of-a-skill  -        -        -         Invalid
      a/own                      e2b      -        -         BuildNotConfigured
      a/new                      -        -        -         …
      and 1 more"
    `);
  });
  test('is never wider than the screen', () => {
    const lines = skillTable(views, { ...plain, width: 72 });
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(72);
    expect(lines.join('\n')).toContain('…');
  });
  test('has the same columns with colours', () => {
    const marked = skillTable(views, { ...plain, paint: (_, text) => `<${text}>` });
    expect(marked.map((line) => line.replaceAll(/[<>]/g, '').trimEnd())).toEqual(skillTable(views, plain));
  });
  test('is summed up in one line', () => {
    expect(countLine(views)).toMatchInlineSnapshot(
      `"1 of 4 Skills Ready, 1 BuildNotConfigured, 1 Invalid, 1 under way"`,
    );
    expect(countLine(views.slice(0, 1))).toMatchInlineSnapshot(`"1 of 1 Skill Ready"`);
    expect(countLine([])).toMatchInlineSnapshot(`"0 of 0 Skills Ready"`);
  });
});

describe('checkExamples', () => {
  const broken = viewOf(skill(BROKEN_ON_PURPOSE, { ready: 'False', reason: 'Invalid' }));
  const own = viewOf(skill('a/own', { ready: 'False', reason: 'BuildNotConfigured' }));
  const good = viewOf(skill('a/good'));
  test('takes the marketplace as its README describes it', () => {
    expect(() => checkExamples([broken, own, good])).not.toThrow();
  });
  test.each<[string, SkillView[], string]>([
    ['no Skills', [], 'the marketplace brought no Skills'],
    [
      'an invalid skill that should be valid',
      [broken, viewOf(skill('a/b', { ready: 'False', reason: 'Invalid' }))],
      'these Skills did not come out as expected:\na/b: Invalid says Invalid',
    ],
    [
      'a valid skill that should be broken',
      [viewOf(skill(BROKEN_ON_PURPOSE))],
      `these Skills did not come out as expected:\n${BROKEN_ON_PURPOSE}: Succeeded says Succeeded`,
    ],
    [
      'a store that is away',
      [viewOf(skill('a/b', { ready: 'False', reason: 'StoreUnavailable' }))],
      'these Skills did not come out as expected:\na/b: StoreUnavailable says StoreUnavailable',
    ],
  ])('refuses %s', (_, views, message) => {
    expect(() => checkExamples(views)).toThrow(message);
  });
});
