import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { HELM_COMPILE_MS, Helm, one, type Values } from '../../support/helm.ts';
import { type K8sObject, parseObjects } from '../../support/k8s.ts';
import { blocks, page, ROOT } from '../../support/markdown.ts';
import { marketplace, newRepository, publicUrl } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';

/** The examples and pages for GitOps say what is true. */
const example = (path: string): K8sObject[] =>
  parseObjects(readFileSync(join(ROOT, 'examples', 'gitops', path), 'utf8'));

describe('a GitOps tool', () => {
  let operator: Operator;
  let manifest: K8sObject;

  beforeAll(async () => {
    operator = await startOperator(inject('cluster'));
    const repository = await newRepository(operator, 'gitops');
    await repository.commit(marketplace({ docs: { pdf: {}, csv: {} } }));
    const source = one(example('marketplaces/team.yaml'), 'MarketplaceSource');
    manifest = {
      ...source,
      metadata: { ...source.metadata, namespace: operator.namespace },
      spec: { ...source.spec, git: { url: publicUrl(operator, repository) } },
    };
    await operator.k8s.apply(manifest, { manager: 'argocd-controller', force: false });
    await operator.k8s.waitCondition(operator.source('team'), 'SkillsHealthy');
    await operator.k8s.waitCondition(operator.source('team'), 'Ready');
  }, 120_000);
  afterAll(() => operator?.[Symbol.asyncDispose]());

  test('finds the source as it applied it, once it is Ready', async () => {
    const live = await operator.k8s.get(operator.source('team'));
    expect(live?.spec).toEqual(manifest.spec);
    expect(live?.metadata.labels ?? {}).toEqual({});
    expect(live?.metadata.annotations ?? {}).toEqual({});
    expect(live?.metadata.finalizers ?? []).toEqual([]);
  });
  test('causes no write when it applies the same again', async () => {
    const before = await operator.k8s.get(operator.source('team'));
    const [again] = await operator.k8s.apply(manifest, { manager: 'argocd-controller', force: false });
    expect(again?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
  });
  test('of another name may apply the same beside it, without a conflict and without a change', async () => {
    const before = await operator.k8s.get(operator.source('team'));
    const options = { manager: 'kustomize-controller', force: false, dryRun: true };
    const [beside] = await operator.k8s.apply(manifest, options);
    expect(beside?.metadata.generation).toBe(before?.metadata.generation);
    expect({ spec: beside?.spec, status: beside?.status }).toEqual({ spec: before?.spec, status: before?.status });
  });
  test('is not shown the generated Skills as its own: they belong to their source', async () => {
    const { apiVersion, kind, namespace } = operator.skill('');
    const skills = await operator.k8s.list({ apiVersion, kind, ...(namespace ? { namespace } : {}) });
    expect(skills).toHaveLength(2);
    for (const { metadata } of skills)
      expect(metadata.ownerReferences).toMatchObject([{ kind: 'MarketplaceSource', name: 'team', controller: true }]);
  });
});

describe('values that people are shown', () => {
  const helm = new Helm();
  beforeAll(() => helm.prepare(), HELM_COMPILE_MS);
  afterAll(() => helm[Symbol.asyncDispose]());

  const [application] = example('argocd/applications.yaml');
  const shown: [where: string, values: Values][] = [
    ['the Application', application?.spec.source.helm.valuesObject],
    ['the HelmRelease', one(example('flux/operator/release.yaml'), 'HelmRelease').spec.values],
  ];
  test.each(shown)('in %s make a release', async (_where, values) => {
    expect(one(await helm.render(values), 'Deployment').spec.replicas).toBe(2);
  });
  test('in docs/guides/install.md make a release, each on top of the one before', async () => {
    const [real, builds] = blocks(page('docs/guides/install.md'), 'yaml').map(
      (text) => parse(text.replace('sha256:…', `sha256:${'0'.repeat(64)}`)) as Values & { config: object },
    );
    expect(one(await helm.render(real as Values), 'Deployment').spec.replicas).toBe(2);
    const both = { ...real, config: { ...real?.config, ...builds?.config } };
    expect(one(await helm.render(both), 'Namespace').metadata.name).toBe('skill-operator-builds');
  });
});

test('Flux waits for the operator before the marketplaces', () => {
  const kustomizations = example('flux/sync.yaml').filter(({ kind }) => kind === 'Kustomization');
  const marketplaces = one(kustomizations, 'Kustomization', 'skill-marketplaces');
  expect(marketplaces.spec.dependsOn).toEqual([{ name: 'skill-operator' }]);
  for (const { spec } of kustomizations) expect(spec.wait).toBe(true);
});
test('Argo CD applies the operator in an earlier wave than the marketplaces', () => {
  const waves = example('argocd/applications.yaml').map(({ metadata }) => [
    metadata.name,
    metadata.annotations?.['argocd.argoproj.io/sync-wave'],
  ]);
  expect(waves).toEqual([
    ['skill-operator', '0'],
    ['skill-marketplaces', '1'],
  ]);
});
