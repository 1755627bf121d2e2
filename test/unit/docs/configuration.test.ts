import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig, usage } from '../../../src/config.ts';
import { blocks, page, pages } from '../../support/markdown.ts';

const guide = page('docs/guides/configuration.md');
const SECRETS = { accessKey: 'a', secretKey: 'a-long-secret-key' };

const rows = [...guide.text.matchAll(/^\| (.*?) ?\| (.*?) ?\| (.*?) ?\| (.*?) ?\| (.*?) \|$/gm)]
  .slice(1)
  .map(([, flag = '', variable = '', key = '', fallback = '']) => {
    const bare = (cell: string) => cell.replaceAll('`', '').trim();
    return { flag: bare(flag), variable: bare(variable), key: bare(key), fallback: bare(fallback) };
  });

const at = (object: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown>)?.[key], object);

describe('docs/guides/configuration.md', () => {
  test('names every flag with its environment variable, and no others', () => {
    const known = [...usage().matchAll(/^ {2}(--[a-z0-9-]+) .*\[(\w+)\]$/gm)].map(([, flag, variable]) => [
      flag,
      variable,
    ]);
    expect(known.length).toBeGreaterThan(10);
    expect(rows.filter(({ flag }) => flag !== '').map(({ flag, variable }) => [flag, variable])).toEqual(known);
  });

  test('names the default that counts when a setting is left out', () => {
    const config = parseConfig({ store: { endpoint: 'http://127.0.0.1:9000', bucket: 'skills', ...SECRETS } });
    const words = new Set(['required', 'none', "the system's", 'from a ConfigMap', 'all', 'see below']);
    const stated = rows.filter(({ fallback }) => !words.has(fallback));
    expect(stated.length).toBeGreaterThan(8);
    expect(Object.fromEntries(stated.map(({ key, fallback }) => [key, fallback]))).toEqual(
      Object.fromEntries(stated.map(({ key }) => [key, String(at(config, key))])),
    );
  });

  test('shows a settings file that is accepted, with keys of the table', () => {
    const [file = ''] = blocks(guide, 'yaml');
    const settings = parse(file) as { store: object };
    const config = parseConfig({ ...settings, store: { ...settings.store, ...SECRETS } });
    expect(config).toMatchObject(settings);
    const keys = Object.entries(settings).flatMap(([key, value]) =>
      key === 'store' ? Object.keys(value).map((inner) => `store.${inner}`) : [key],
    );
    expect(keys.filter((key) => !rows.some((row) => row.key === key))).toEqual([]);
  });
});

test('no page names an environment variable or a flag of the operator that does not exist', () => {
  const help = usage();
  const text = pages()
    .map((one) => one.text)
    .join('\n');
  const variables = new Set([...text.matchAll(/\bSKILL_OPERATOR_[A-Z_]+/g)].map(([name]) => name));
  expect([...variables].filter((name) => !help.includes(name))).toEqual([]);
  const operator = [...text.matchAll(/npm run -s operator -- (.*?)(?:`|$)/gm)].map(([, flags = '']) => flags);
  const flags = operator.flatMap((line) => [...line.matchAll(/--[a-z-]+/g)].map(([flag]) => flag));
  expect(flags.length).toBeGreaterThan(1);
  expect(flags.filter((flag) => flag !== '--help' && !help.includes(` ${flag} `))).toEqual([]);
});
