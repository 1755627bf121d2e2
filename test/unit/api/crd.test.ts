import { describe, expect, test } from 'vitest';
import { ABNORMAL_TRUE, SKILL_CONDITIONS, SOURCE_CONDITIONS } from '../../../src/api/conditions.ts';
import { customResourceDefinitions, type SchemaNode, walk } from '../../../src/api/crd.ts';
import { marketplaceSourceSchema } from '../../../src/api/marketplacesource.ts';
import { skillSchema } from '../../../src/api/skill.ts';

interface Crd {
  spec: { versions: { schema: { openAPIV3Schema: SchemaNode } }[] };
}

/** The rules of a structural schema (KEP-2335) and of this project, on every node of both CRDs. */
describe.each(Object.entries(customResourceDefinitions()))('the schema of %s', (_plural, crd) => {
  const root = (crd as unknown as Crd).spec.versions[0]?.schema.openAPIV3Schema as SchemaNode;
  const nodes: [string, SchemaNode][] = [];
  walk(root, (node, path) => nodes.push([path, node]));
  const offenders = (bad: (node: SchemaNode, path: string) => boolean) =>
    nodes.filter(([path, node]) => bad(node, path)).map(([path]) => path);
  const inSpec = (path: string) => path === 'spec' || path.startsWith('spec.');
  const top = new Set(['', 'apiVersion', 'kind', 'metadata']);

  test('every node has a type, and none a construct that a structural schema forbids', () => {
    expect(nodes.length).toBeGreaterThan(50);
    expect(offenders((node) => typeof node.type !== 'string')).toEqual([]);
    const forbidden = [
      'anyOf',
      'oneOf',
      'allOf',
      'not',
      'nullable',
      '$ref',
      'propertyNames',
      'patternProperties',
      'const',
    ];
    expect(offenders((node) => forbidden.some((key) => key in node))).toEqual([]);
    expect(offenders((node) => 'properties' in node && 'additionalProperties' in node)).toEqual([]);
  });
  test('every string, list and map is bounded, so that rules stay cheap and objects small', () => {
    const known = ['date-time'];
    expect(
      offenders(
        (node, path) =>
          !top.has(path) &&
          node.type === 'string' &&
          !node.maxLength &&
          !node.enum &&
          path !== 'spec.type' &&
          !known.includes(String(node.format)) &&
          !/(phase|state)$/.test(path),
      ),
    ).toEqual([]);
    expect(offenders((node) => node.type === 'array' && !node.maxItems)).toEqual([]);
    expect(offenders((node) => node.additionalProperties !== undefined && !node.maxProperties)).toEqual([]);
  });
  test('every list says how it merges', () => {
    expect(offenders((node) => node.type === 'array' && !node['x-kubernetes-list-type'])).toEqual([]);
  });
  test('there is no default below spec, and no closed list below status', () => {
    expect(offenders((node, path) => inSpec(path) && 'default' in node)).toEqual([]);
    expect(offenders((node, path) => path.startsWith('status') && 'enum' in node)).toEqual([]);
    expect(offenders((node) => 'default' in node)).toEqual(['status', 'status.observedGeneration']);
  });
  test('every field is explained, and every rule says what to type', () => {
    const leaf = (path: string) => !top.has(path) && !path.endsWith('[]') && !path.endsWith('{}');
    expect(offenders((node, path) => leaf(path) && !node.description)).toEqual([]);
    const rules = nodes.flatMap(
      ([, node]) => (node['x-kubernetes-validations'] as { message: string }[] | undefined) ?? [],
    );
    for (const { message } of rules) expect(message).toMatch(/must|unsupported/);
  });
  test('integers carry no bound of the language', () => {
    expect(offenders((node) => Math.abs(Number(node.maximum ?? 0)) > 1000)).toEqual([]);
  });
});

test('the parse schemas accept what they do not know: an object stored by a later release', () => {
  const source = { spec: { type: 'git', git: { url: 'https://h/x', depth: 1 }, later: true }, status: { later: 1 } };
  expect(marketplaceSourceSchema.parse(source)).toEqual({
    spec: { type: 'git', git: { url: 'https://h/x' } },
    status: {},
  });
  const spec = { source: { marketplaceRef: { name: 'a' } }, plugin: 'p', path: 'x', later: {} };
  expect(skillSchema.safeParse({ spec }).success).toBe(true);
  expect(skillSchema.safeParse({ spec: { source: {} } }).success).toBe(false);
});

test('conditions of negative polarity are known types', () => {
  const known: readonly string[] = [...SOURCE_CONDITIONS, ...SKILL_CONDITIONS];
  for (const type of ABNORMAL_TRUE) expect(known).toContain(type);
});
