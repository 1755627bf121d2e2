import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { customResourceDefinitions } from '../../../src/api/crd.ts';
import { API_VERSION } from '../../../src/api/labels.ts';
import { K8s, type K8sObject, refOf } from '../../support/k8s.ts';
import { installCrds } from '../../support/operator-account.ts';
import { GOOD_SKILLS, GOOD_SOURCES } from './accepted.ts';
import { GIT_SKILL, GIT_SOURCE } from './objects.ts';
import { BAD_SKILLS } from './refused-skills.ts';
import { BAD_SOURCES, HOSTILE_URLS } from './refused-sources.ts';

/** The committed CRDs on the real API server: what is refused, in which words, and what a stored object looks like. */
const info = inject('cluster');
const k8s = new K8s(info.kubeconfig);
let namespace: string;

beforeAll(async () => {
  await installCrds(info);
  namespace = await k8s.createNamespace('api');
});
afterAll(async () => {
  await k8s[Symbol.asyncDispose]();
});

let serial = 0;
const object = (kind: string, spec: unknown, name = `x${++serial}`): K8sObject => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { name, namespace },
  spec,
});

/** What the API server says about the object, without preamble, values and the note that an object of a wrong shape sees no further rules. */
async function refusal(candidate: K8sObject): Promise<string> {
  try {
    await k8s.apply(candidate, { dryRun: true });
  } catch (error) {
    return (error as Error).message
      .replace(/^.* is invalid: /s, '')
      .replaceAll(/Invalid value: (?:"(?:[^"\\]|\\.)*"|\w+): /g, '')
      .replace(/^\[(.*), <nil>: some validation rules were not checked.*\]$/s, '$1');
  }
  return 'accepted';
}

describe('the committed CRDs', () => {
  test.each(Object.entries(customResourceDefinitions()))('%s is what src/api gives', (plural, crd) => {
    expect(parse(readFileSync(`crds/${plural}.yaml`, 'utf8'))).toEqual(crd);
  });
  test('neither is reported as non-structural, and both names are accepted', async () => {
    for (const plural of Object.keys(customResourceDefinitions())) {
      const crd = await k8s.get({
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        name: `${plural}.skills.tfrobot.io`,
      });
      const conditions = (crd as K8sObject).status.conditions.map(
        (c: { type: string; status: string }) => `${c.type}=${c.status}`,
      );
      expect(conditions.sort()).toEqual(['Established=True', 'NamesAccepted=True']);
    }
  });
});

describe('a MarketplaceSource is accepted', () => {
  test.each(GOOD_SOURCES)('$title', async ({ spec }) => {
    expect(await refusal(object('MarketplaceSource', spec))).toBe('accepted');
  });
});

describe('a MarketplaceSource is refused', () => {
  test.each(BAD_SOURCES)('$title', async ({ spec, name, says }) => {
    const message = await refusal(object('MarketplaceSource', spec, name));
    expect(message).toContain(says);
    // One mistake, one message: the reader must not have to guess which one counts.
    expect(message.startsWith('[')).toBe(false);
  });
  test.each(HOSTILE_URLS)('a hostile address: %s', async (url) => {
    for (const spec of [
      { type: 'git', git: { url } },
      { type: 'git-subdir', gitSubdir: { url, path: 'a' } },
    ])
      expect(await refusal(object('MarketplaceSource', spec))).toMatch(
        /must (start with|not|name a host|have a user name)/,
      );
    expect(await refusal(object('Skill', { ...GIT_SKILL, source: { git: { url } } }))).toContain('spec.source.git.url');
  });
});

describe('a Skill is accepted', () => {
  test.each(GOOD_SKILLS)('$title', async ({ spec }) => {
    expect(await refusal(object('Skill', spec))).toBe('accepted');
  });
});

describe('a Skill is refused', () => {
  test.each(BAD_SKILLS)('$title', async ({ spec, says }) => {
    const message = await refusal(object('Skill', spec));
    expect(message).toContain(says);
    expect(message.startsWith('[')).toBe(false);
  });
});

describe('a stored object', () => {
  const kinds = [
    { kind: 'MarketplaceSource', spec: GIT_SOURCE },
    { kind: 'Skill', spec: GIT_SKILL },
  ];
  test.each(kinds)('$kind starts with observedGeneration -1 and keeps its spec as written', async ({ kind, spec }) => {
    const [stored] = await k8s.apply(object(kind, spec));
    expect(stored?.status).toEqual({ observedGeneration: -1 });
    expect(stored?.spec).toEqual(spec);
    expect(stored?.metadata.generation).toBe(1);
  });
  test.each(kinds)('$kind does not drift: applying the same manifest changes nothing', async ({ kind, spec }) => {
    const manifest = object(kind, spec);
    const [first] = await k8s.apply(manifest, { manager: 'gitops' });
    const [again] = await k8s.apply(manifest, { manager: 'gitops', dryRun: true });
    expect(again?.spec).toEqual(spec);
    expect(again?.metadata.resourceVersion).toBe(first?.metadata.resourceVersion);
  });
  test.each(kinds)(
    'a status of $kind without observedGeneration gets -1, and words of a later release are stored',
    async ({ kind, spec }) => {
      const [stored] = await k8s.apply(object(kind, spec));
      const status =
        kind === 'Skill'
          ? {
              templateIDs: { firecracker: 'fc-1' },
              candidate: {
                ...{
                  version: 'v',
                  digest: 'd',
                  manifestSHA256: 'm',
                  commit: 'c',
                  runtime: 'firecracker',
                  files: 1,
                  bytes: 2,
                },
                phase: 'Warming',
              },
            }
          : { revision: 'main@sha1:0' };
      const patched = await k8s.patch(
        refOf(stored as K8sObject),
        { status: { ...status, observedGeneration: null } },
        'status',
      );
      expect(patched.status).toEqual({ ...status, observedGeneration: -1 });
    },
  );
  test('conditions of two field managers live side by side', async () => {
    const [stored] = await k8s.apply(object('MarketplaceSource', GIT_SOURCE));
    const { apiVersion, kind, metadata } = stored as K8sObject;
    const body = (type: string) => ({
      ...{ apiVersion, kind, metadata: { name: metadata.name, namespace } },
      status: {
        conditions: [
          { type, status: 'True', reason: 'Succeeded', message: 'm', lastTransitionTime: '2026-01-01T00:00:00Z' },
        ],
      },
    });
    await k8s.apply(body('Ready'), { manager: 'skill-operator-source', subresource: 'status' });
    await k8s.apply(body('SkillsHealthy'), { manager: 'skill-operator-counts', subresource: 'status' });
    await k8s.apply(body('Ready'), { manager: 'skill-operator-source', subresource: 'status' });
    const live = await k8s.get(refOf(stored as K8sObject));
    expect(live?.status.conditions.map((c: { type: string }) => c.type).sort()).toEqual(['Ready', 'SkillsHealthy']);
  });
  test('the same object twice under another writer: a person may suspend a generated Skill', async () => {
    const [stored] = await k8s.apply(object('Skill', GIT_SKILL), { manager: 'skill-operator-source' });
    await k8s.patch(refOf(stored as K8sObject), { spec: { suspend: true } });
    const [again] = await k8s.apply(
      { ...object('Skill', GIT_SKILL, stored?.metadata.name) },
      { manager: 'skill-operator-source' },
    );
    expect(again?.spec.suspend).toBe(true);
  });
  test('short names, category and print columns are served', async () => {
    const { text } = await k8s.api.request('GET', `/apis/${API_VERSION}`);
    const resources = (JSON.parse(text).resources as { name: string; shortNames?: string[]; categories?: string[] }[])
      .filter((r) => !r.name.includes('/'))
      .map((r) => `${r.name} ${r.shortNames} ${r.categories}`);
    expect(resources.sort()).toEqual(['marketplacesources mps skills', 'skills skl skills']);
    expect(await columns('marketplacesources')).toEqual(['Type', 'Revision', 'Skills', 'Ready', 'Status', 'Age']);
    expect(await columns('skills')).toEqual(['Plugin', 'Runtime', 'Version', 'Template', 'Ready', 'Status', 'Age']);
  });
});

/** The columns of `kubectl get`, as the server stored them. */
async function columns(plural: string): Promise<string[]> {
  const crd = await k8s.get({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    name: `${plural}.skills.tfrobot.io`,
  });
  const own = crd?.spec.versions[0].additionalPrinterColumns as { name: string }[];
  return own.map(({ name }) => name);
}
