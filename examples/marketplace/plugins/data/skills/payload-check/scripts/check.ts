// Checks a JSON payload against a field description. Argument: the payload; standard input: the description.
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const MAX_DEVIATIONS = 1000;

const types: Record<string, () => z.ZodType> = {
  string: () => z.string(),
  integer: () => z.number().int(),
  number: () => z.number(),
  boolean: () => z.boolean(),
  email: () => z.string().email(),
  url: () => z.string().url(),
  date: () => z.string().regex(/^\d{4}-\d{2}-\d{2}$/, 'must be a date as YYYY-MM-DD'),
};

function toSchema(description: unknown, path: string): z.ZodType {
  if (typeof description === 'string') {
    const make = Object.hasOwn(types, description) ? types[description] : undefined;
    if (!make) throw new Error(`${path}: unknown type "${description}"; use ${Object.keys(types).join(', ')}`);
    return make();
  }
  if (Array.isArray(description)) {
    if (description.length !== 1) throw new Error(`${path}: a list is described by exactly one type`);
    return z.array(toSchema(description[0], `${path}[]`));
  }
  if (typeof description !== 'object' || description === null) {
    throw new Error(`${path}: must be a type name, a list or an object`);
  }
  const fields: Record<string, z.ZodType> = {};
  for (const [key, value] of Object.entries(description)) {
    const name = key.replace(/\?$/, '');
    const schema = toSchema(value, `${path}.${name}`);
    fields[name] = name === key ? schema : schema.optional();
  }
  return z.object(fields).strict();
}

function main(): void {
  const payloadPath = process.argv[2];
  if (!payloadPath) throw new Error('give the payload file as argument');
  const schema = toSchema(JSON.parse(readFileSync(0, 'utf8')), '$');
  const payload: unknown = JSON.parse(readFileSync(payloadPath, 'utf8'));
  const items = Array.isArray(payload) ? payload : [payload];
  const deviations: { index: number; path: string; message: string }[] = [];
  let valid = 0;
  for (const [index, item] of items.entries()) {
    const result = schema.safeParse(item);
    if (result.success) valid += 1;
    else {
      for (const issue of result.error.issues) {
        deviations.push({ index, path: ['$', ...issue.path].join('.'), message: issue.message });
      }
    }
  }
  const shown = deviations.slice(0, MAX_DEVIATIONS);
  console.log(JSON.stringify({ checked: items.length, valid, total: deviations.length, deviations: shown }));
}

try {
  main();
} catch (error) {
  console.log(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }));
  process.exitCode = 1;
}
