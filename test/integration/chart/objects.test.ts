import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createMetrics } from '../../../src/base/metrics.ts';
import { CHART, HELM_COMPILE_MS, MINIMAL, one } from '../../support/helm.ts';
import { type K8sObject, parseObjects } from '../../support/k8s.ts';
import { Rendered, type VariantName } from './variants.ts';

const rendered = new Rendered();
beforeAll(() => rendered.prepare(), HELM_COMPILE_MS);
afterAll(() => rendered[Symbol.asyncDispose]());
const variant = (name: VariantName): Promise<K8sObject[]> => rendered.of(name);
const names = (objects: readonly K8sObject[]): string[] =>
  objects.map(({ kind, metadata: { namespace, name } }) => `${kind} ${namespace ? `${namespace}/` : ''}${name}`).sort();

describe('the objects of a variant', () => {
  test('minimal', async () => {
    expect(names(await variant('minimal'))).toMatchInlineSnapshot(`
      [
        "ClusterRole skill-operator",
        "ClusterRole skill-operator-editor",
        "ClusterRole skill-operator-viewer",
        "ClusterRoleBinding skill-operator",
        "ConfigMap skill-operator-system/skill-operator-config",
        "CustomResourceDefinition marketplacesources.skills.tfrobot.io",
        "CustomResourceDefinition skills.skills.tfrobot.io",
        "Deployment skill-operator-system/skill-operator",
        "NetworkPolicy skill-operator-system/skill-operator",
        "Pod skill-operator-system/skill-operator-test",
        "Role skill-operator-system/skill-operator",
        "RoleBinding skill-operator-system/skill-operator",
        "Service skill-operator-system/skill-operator-metrics",
        "ServiceAccount skill-operator-system/skill-operator",
        "ValidatingAdmissionPolicy skill-operator-crds",
        "ValidatingAdmissionPolicyBinding skill-operator-crds",
      ]
    `);
  });
  const builds = [
    'LimitRange team-builds/skill-operator-builds',
    'Namespace team-builds',
    'NetworkPolicy team-builds/default-deny',
    'NetworkPolicy team-builds/skill-build',
    'ResourceQuota team-builds/skill-operator-builds',
    'Role team-builds/skill-operator-builds',
    'RoleBinding team-builds/skill-operator-builds',
    'ServiceAccount team-builds/skill-builder',
  ];
  test.each<[VariantName, string[]]>([
    ['two replicas', ['PodDisruptionBudget skill-operator-system/skill-operator']],
    ['builds', builds],
    [
      'two namespaces',
      [
        ...builds,
        ...['market', 'team'].flatMap((namespace) =>
          ['Role', 'RoleBinding'].map((kind) => `${kind} ${namespace}/skill-operator-watch`),
        ),
      ],
    ],
    [
      'monitoring',
      [
        'ConfigMap skill-operator-system/skill-operator-dashboard',
        'PrometheusRule skill-operator-system/skill-operator',
        'ServiceMonitor skill-operator-system/skill-operator',
      ],
    ],
    [
      'webhooks',
      ['HTTPRoute', 'Ingress', 'Service']
        .map((kind) => `${kind} skill-operator-system/skill-operator-webhook`)
        .concat('PodDisruptionBudget skill-operator-system/skill-operator'),
    ],
    [
      'to try out',
      [
        ...builds,
        ...['Deployment', 'NetworkPolicy', 'PersistentVolumeClaim', 'Secret', 'Service'].map(
          (kind) => `${kind} skill-operator-system/skill-operator-s3`,
        ),
      ],
    ],
  ])('%s, beside those of minimal', async (name, beside) => {
    const known = new Set(names(await variant('minimal')));
    expect(names(await variant(name)).filter((line) => !known.has(line))).toEqual(beside.toSorted());
  });
  test('without rights and CRDs', async () => {
    const kinds = (await variant('without rights and CRDs')).map(({ kind }) => kind);
    expect(kinds.sort()).toEqual(['ConfigMap', 'Deployment', 'Pod', 'Service']);
  });
  test('everything: names, labels and the extra object follow the values', async () => {
    const objects = await variant('everything');
    expect(one(objects, 'ConfigMap', 'skill-operator-extra').metadata.namespace).toBe('skill-operator-system');
    const bare = objects.filter(({ metadata }) => metadata.labels?.team !== 'platform');
    expect(names(bare)).toEqual(['ConfigMap skill-operator-system/skill-operator-extra']);
  });
});

describe('webhooks', () => {
  test('lead from the path /hooks/ to the port that the receiver listens on', async () => {
    const objects = await variant('webhooks');
    const [container] = one(objects, 'Deployment').spec.template.spec.containers;
    expect(container.ports).toContainEqual({ name: 'webhook', containerPort: 9292 });
    const settings = parse(one(objects, 'ConfigMap', 'skill-operator-config').data['config.yaml']);
    expect(settings.webhookAddress).toBe(':9292');
    expect(one(objects, 'Service', 'skill-operator-webhook').spec.ports).toEqual([
      { name: 'webhook', port: 80, targetPort: 'webhook' },
    ]);
    const [rule] = one(objects, 'Ingress').spec.rules;
    expect(rule).toMatchObject({
      host: 'hooks.example.com',
      http: { paths: [{ path: '/hooks/', pathType: 'Prefix' }] },
    });
    expect(one(objects, 'HTTPRoute').spec.rules[0].matches).toEqual([
      { path: { type: 'PathPrefix', value: '/hooks/' } },
    ]);
    const { ingress } = one(objects, 'NetworkPolicy').spec;
    expect(ingress.map(({ ports }: { ports: unknown[] }) => ports)).toEqual([
      [{ protocol: 'TCP', port: 'http' }],
      [{ protocol: 'TCP', port: 'webhook' }],
    ]);
  });
  test('are off until somebody asks for them', async () => {
    const objects = await variant('minimal');
    expect(one(objects, 'NetworkPolicy').spec.ingress).toHaveLength(1);
    const settings = parse(one(objects, 'ConfigMap', 'skill-operator-config').data['config.yaml']);
    expect(settings).not.toHaveProperty('webhookAddress');
  });
});

describe('CRDs', () => {
  const crds = (objects: K8sObject[]) => objects.filter(({ kind }) => kind === 'CustomResourceDefinition');
  test('are those of crds/, kept at uninstall', async () => {
    for (const crd of crds(await variant('minimal'))) {
      const file = join(CHART, '..', '..', 'crds', `${crd.spec.names.plural}.yaml`);
      expect(crd.spec).toEqual(parseObjects(readFileSync(file, 'utf8'))[0]?.spec);
      expect(crd.metadata.annotations).toMatchObject({ 'helm.sh/resource-policy': 'keep' });
    }
    expect(crds(await variant('minimal'))).toHaveLength(2);
  });
  test('go with the release where crds.keep is false', async () => {
    const [crd] = crds(await rendered.values({ ...MINIMAL, crds: { keep: false } }));
    expect(crd?.metadata.annotations).not.toHaveProperty('helm.sh/resource-policy');
  });
});

describe('monitoring', () => {
  /** Names in PromQL that are followed by a selector. */
  const metricsOf = (text: string): string[] => [...text.matchAll(/([a-z0-9_]+)\{/g)].map(([, name]) => name ?? '');

  test('alerts and dashboard ask for metrics that the operator has', async () => {
    const objects = await variant('monitoring');
    const { rules } = one(objects, 'PrometheusRule').spec.groups[0];
    const dashboard = JSON.parse(one(objects, 'ConfigMap', 'skill-operator-dashboard').data['skill-operator.json']);
    const queries = [
      ...rules.map(({ expr }: { expr: string }) => expr),
      ...dashboard.panels.flatMap(({ targets }: { targets: { expr: string }[] }) => targets.map(({ expr }) => expr)),
    ] as string[];
    const rendered = await createMetrics().render();
    const known = new Set([...rendered.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
    const asked = new Set(queries.flatMap(metricsOf).map((name) => name.replace(/_bucket$/, '')));
    asked.delete('up');
    expect([...asked].filter((name) => !known.has(name))).toEqual([]);
    expect(asked.size).toBeGreaterThan(8);
  });
  test('alerts carry the job and namespace of the release, and texts with a next step', async () => {
    const { rules } = one(await variant('monitoring'), 'PrometheusRule').spec.groups[0];
    for (const rule of rules) {
      expect(rule.expr).toContain('job="skill-operator-metrics", namespace="skill-operator-system"');
      expect(JSON.stringify(rule)).not.toMatch(/\$(JOB|NAMESPACE|MEMORY_MIB)/);
      expect(rule.annotations.description).toBeTruthy();
    }
  });
});
