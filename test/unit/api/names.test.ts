import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { labelValue, skillDirectory, skillObjectName } from '../../../src/api/names.ts';

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

describe('skillObjectName', () => {
  test.each([
    ['plain names are joined', 'team', 'docs', 'pdf', 'team.docs.pdf'],
    ['a capital letter is hashed', 'team', 'Docs', 'pdf', 'team.docs-pdf-58a02e5f3d86'],
    ['a dot is hashed, since a.b + c and a + b.c would meet', 'team', 'a.b', 'c', 'team.a-b-c-1b6a7ff7f7a1'],
    ['nothing readable is left', 'team', 'é', '日本', 'team.skill-0'],
  ])('%s', (_title, source, plugin, skill, name) => {
    const actual = skillObjectName(source, plugin, skill);
    expect(actual.replace(/-[0-9a-f]{12}$/, '-#')).toBe(name.replace(/-[0-9a-f]{1,12}$/, '-#'));
  });
  test('a name that is too long is hashed', () => {
    const name = skillObjectName('s', 'p'.repeat(200), 'k'.repeat(64));
    expect(name).toMatch(/^s\.p{100}-[0-9a-f]{12}$/);
  });
  test('is always an object name, and two skills never share one', () => {
    const part = fc.oneof(fc.string({ minLength: 1 }), fc.constantFrom('a', 'b', 'a.b', 'b.a', 'a-b', 'A', '-', 'é'));
    const skills = fc.tuple(fc.constantFrom('s', 'a-b'), part, part);
    fc.assert(
      fc.property(fc.uniqueArray(skills, { selector: (s) => s.join('\0') }), (list) => {
        const names = list.map((s) => skillObjectName(...s));
        for (const name of names) expect(name.length <= 253 && SUBDOMAIN.test(name), name).toBe(true);
        expect(new Set(names).size).toBe(names.length);
      }),
    );
  });
});

describe('labelValue', () => {
  test.each([
    ['docs', 'docs'],
    ['Docs_1.x', 'Docs_1.x'],
    ['', ''],
  ])('%s stays', (value, label) => expect(labelValue(value)).toBe(label));
  test('is always a label value, and different values stay different', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ maxLength: 100 })), (values) => {
        const labels = values.map(labelValue);
        for (const label of labels) expect(label).toMatch(/^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$/);
        expect(new Set(labels).size).toBe(values.length);
      }),
    );
  });
});

test.each([
  ['plugins/docs/skills/pdf', 'pdf'],
  ['pdf', 'pdf'],
])('skillDirectory of %s is %s', (path, name) => expect(skillDirectory(path)).toBe(name));
