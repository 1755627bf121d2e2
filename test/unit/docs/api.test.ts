import { describe, expect, test } from 'vitest';
import { specDefaults } from '../../../scripts/lib/docs/defaults.ts';
import { fieldRows, ruleRows } from '../../../scripts/lib/docs/fields.ts';
import { customResourceDefinitions, type SchemaNode, walk } from '../../../src/api/crd.ts';

interface Crd {
  spec: { names: { kind: string }; versions: { schema: { openAPIV3Schema: SchemaNode } }[] };
}

const kinds = Object.values(customResourceDefinitions() as unknown as Record<string, Crd>).map((crd) => {
  const schema = crd.spec.versions[0]?.schema.openAPIV3Schema as SchemaNode;
  const { spec, status } = schema.properties as { spec: SchemaNode; status: SchemaNode };
  return {
    kind: crd.spec.names.kind,
    spec,
    rows: [...fieldRows(spec, 'spec'), ...fieldRows(status, 'status')],
    schema,
  };
});

describe.each(kinds)('the API reference of $kind', ({ kind, spec, rows, schema }) => {
  test('has a row for every field, or a row that says where the same fields stand', () => {
    const shown = new Set(rows.map(({ path }) => path));
    const elsewhere = rows
      .filter(({ text }) => /fields (as in|of) status\./i.test(text))
      .map(({ path }) => `${path.replace(/\[\]$/, '')}`);
    const missing: string[] = [];
    walk(schema, (_, path) => {
      const named = /^(spec|status)\./.test(path) && !/(\[\]|\{\})$/.test(path);
      if (!named || shown.has(path)) return;
      if (!elsewhere.some((from) => path.startsWith(`${from}.`) || path.startsWith(`${from}[].`))) missing.push(path);
    });
    expect(missing).toEqual([]);
    expect(rows.filter(({ text }) => text.length < 8)).toEqual([]);
  });

  test('names as default what the description of the field says, which is what the code does', () => {
    const said = fieldRows(spec, 'spec').flatMap(({ path, text }) => {
      const [, value] = /(\S+) when absent\.$/.exec(text) ?? [];
      return value === undefined ? [] : [[path, value] as const];
    });
    expect(new Map(said)).toEqual(specDefaults(kind));
  });

  test('names every rule of the schema once', () => {
    const messages = ruleRows(schema).map(({ message }) => message);
    expect(new Set(messages).size).toBe(messages.length);
    expect(messages.length).toBeGreaterThan(20);
  });
});

test('a version that is on its way shows only what a served one does not have', () => {
  const skill = kinds.find(({ kind }) => kind === 'Skill');
  const candidate = skill?.rows.filter(({ path }) => path.startsWith('status.candidate.')).map(({ path }) => path);
  expect(candidate).toContain('status.candidate.phase');
  expect(candidate).not.toContain('status.candidate.digest');
});
