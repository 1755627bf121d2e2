import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runArgoScript } from '../../support/lua.ts';

/** The scripts as an administrator hands them to Argo CD, run by the interpreter that Argo CD embeds. */
const CONFIG = fileURLToPath(new URL('../../../argocd/argocd-cm.yaml', import.meta.url));
const { data } = parse(readFileSync(CONFIG, 'utf8')) as { data: Record<string, string> };
type Kind = 'MarketplaceSource' | 'Skill';

const signal = () => AbortSignal.timeout(60_000);
interface Actions {
  'discovery.lua': string;
  definitions: { name: string; 'action.lua': string }[];
}
const actionsOf = (kind: Kind): Actions =>
  parse(data[`resource.customizations.actions.skills.tfrobot.io_${kind}`] ?? '');

// The first run compiles the interpreter.
beforeAll(() => runArgoScript('return {}', {}, AbortSignal.timeout(600_000)), 600_000);

const object = (kind: Kind, status: object | undefined, spec: object = {}) => ({
  apiVersion: 'skills.tfrobot.io/v1alpha1',
  kind,
  metadata: { name: 'team', namespace: 'market', generation: 3 },
  spec,
  ...(status ? { status } : {}),
});
const VERSION = { version: '6aa2af98271e', digest: '6'.repeat(64), runtime: 'prompt-only' };

describe('the actions', () => {
  const enabled = async (kind: Kind, obj: object): Promise<string[]> => {
    const found = (await runArgoScript(actionsOf(kind)['discovery.lua'], obj, signal())) as Record<
      string,
      { disabled: boolean }
    >;
    expect(Object.keys(found).sort()).toEqual(
      actionsOf(kind)
        .definitions.map(({ name }) => name)
        .sort(),
    );
    return Object.keys(found)
      .filter((name) => !found[name]?.disabled)
      .sort();
  };
  const ownImage = { served: { ...VERSION, image: 'registry/x@sha256:1' } };

  test.each<[what: string, kind: Kind, spec: object, status: object | undefined, names: string[]]>([
    ['a source', 'MarketplaceSource', {}, undefined, ['reconcile', 'suspend']],
    ['a suspended source', 'MarketplaceSource', { suspend: true }, undefined, ['resume']],
    ['a Skill without an image', 'Skill', {}, { served: VERSION }, ['reconcile', 'suspend']],
    ['a Skill with an image of its own', 'Skill', {}, ownImage, ['rebuild', 'reconcile', 'suspend']],
    ['a suspended Skill with an image', 'Skill', { suspend: true }, ownImage, ['resume']],
  ])('that are offered for %s', async (_what, kind, spec, status, names) => {
    expect(await enabled(kind, object(kind, status, spec))).toEqual(names);
  });

  const act = async (name: string, spec: object) => {
    const script = actionsOf('Skill').definitions.find((one) => one.name === name)?.['action.lua'] ?? '';
    return (await runArgoScript(script, object('Skill', undefined, { path: 'a', ...spec }), signal())) as {
      metadata: { annotations?: Record<string, string> };
      spec: object;
    };
  };
  const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

  test.each([
    ['reconcile', 'requestedAt'],
    ['rebuild', 'rebuild'],
  ])('%s sets the annotation %s and nothing else', async (name, annotation) => {
    const { metadata, spec } = await act(name, {});
    expect(metadata.annotations).toEqual({ [`skills.tfrobot.io/${annotation}`]: expect.stringMatching(MOMENT) });
    expect(spec).toEqual({ path: 'a' });
  });
  test('suspend and resume set spec.suspend', async () => {
    expect((await act('suspend', {})).spec).toEqual({ path: 'a', suspend: true });
    expect((await act('resume', { suspend: true })).spec).toEqual({ path: 'a', suspend: false });
  });
});
