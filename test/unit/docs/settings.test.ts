import { describe, expect, test } from 'vitest';
import { parseConfig, settingsSchema } from '../../../src/config.ts';
import { page } from '../../support/markdown.ts';

const ENGINES = ['cubesandbox', 'e2b'];
/** The least that switches builds and both engines on. */
const LEAST = {
  store: { endpoint: 'http://127.0.0.1:9000', bucket: 'skills', accessKey: 'a', secretKey: 'a-long-secret-key' },
  build: {
    namespace: 'skill-operator-builds',
    operatorImage: 'registry.example.com/skill-operator:0.1.0',
    builderImage: `registry.example.com/kaniko@sha256:${'a'.repeat(64)}`,
    registry: { host: 'registry.example.com' },
  },
  engines: { cubesandbox: { url: 'http://cube.example.com' }, e2b: { url: 'http://e2b.example.com' } },
};
/** What counts where a setting is absent and the schema has no default. */
const IMPLIED: Readonly<Record<string, unknown>> = {
  'build.registry.insecure': false,
  'build.baseImages.strict': false,
  'engines.cubesandbox.withCubeCA': true,
  'engines.cubesandbox.plainHttpRegistry': false,
};

interface Node {
  properties?: Record<string, Node>;
  required?: string[];
}

/** Paths of all settings below a node; resources are one setting a container. */
const leaves = (node: Node, path: string): string[] =>
  node.properties && !node.properties.requests
    ? Object.entries(node.properties).flatMap(([key, child]) => leaves(child, `${path}.${key}`))
    : [path];

const at = (object: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], object);

const rows = [
  ...page('docs/guides/configuration.md').text.matchAll(/^\| `((?:build|engines)\.[^`]+)` \| (.*?) \| (.*?) \|$/gm),
].flatMap(([, key = '', fallback = '']) => {
  const keys = key.includes('<engine>') ? ENGINES.map((engine) => key.replace('<engine>', engine)) : [key];
  return keys.map((one) => ({ key: one, fallback }));
});

describe('the settings of builds and engines in docs/guides/configuration.md', () => {
  test('are all of them, and no others', () => {
    const { build = {}, engines = {} } = (settingsSchema() as Node).properties ?? {};
    const keys = [...leaves(build, 'build'), ...leaves(engines, 'engines')];
    expect(rows.map(({ key }) => key).sort()).toEqual(keys.sort());
  });

  test('have the default that counts', () => {
    const config = parseConfig(LEAST);
    const stated = rows.filter(({ fallback }) => fallback.startsWith('`'));
    expect(stated.length).toBeGreaterThan(12);
    expect(stated.map(({ key, fallback }) => [key, fallback.replaceAll('`', '')])).toEqual(
      stated.map(({ key }) => [key, String(at(config, key) ?? IMPLIED[key])]),
    );
  });

  test('are required where the operator does not start without them', () => {
    const required = rows.filter(({ fallback }) => fallback === 'required').map(({ key }) => key);
    expect(required.length).toBe(6);
    const without = required.filter((key) => {
      const settings = structuredClone(LEAST) as Record<string, unknown>;
      const parts = key.split('.');
      delete (at(settings, parts.slice(0, -1).join('.')) as Record<string, unknown>)[parts.at(-1) ?? ''];
      try {
        parseConfig(settings);
        return true;
      } catch {
        return false;
      }
    });
    expect(without).toEqual([]);
  });
});
