import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createMetrics } from '../../../src/base/metrics.ts';
import { networkPolicy } from '../../../src/build/network.ts';
import { parseConfig } from '../../../src/config.ts';
import { CHART, HELM_COMPILE_MS, Helm, MINIMAL, one, type Values } from '../../support/helm.ts';
import { type K8sObject, parseObjects } from '../../support/k8s.ts';
import { BUILDS, VARIANTS } from './variants.ts';

const helm = new Helm();
beforeAll(() => helm.prepare(), HELM_COMPILE_MS);
afterAll(() => helm[Symbol.asyncDispose]());

const variant = (name: keyof typeof VARIANTS): Promise<K8sObject[]> => helm.render(VARIANTS[name] as Values);
const names = (objects: readonly K8sObject[]): string[] =>
  objects.map(({ kind, metadata: { namespace, name } }) => `${kind} ${namespace ? `${namespace}/` : ''}${name}`).sort();
const ruleFile = (name: string) => parse(readFileSync(join(CHART, 'rbac', name), 'utf8')) as K8sObject;

describe('the objects of a variant', () => {
  test('minimal', async () => {
    expect(names(await variant('minimal'))).toMatchInlineSnapshot();
  });
  test.each(['two replicas', 'builds', 'one namespace', 'monitoring', 'to try out'])(
    '%s, beside those of minimal',
    async (name) => {
      const [minimal, objects] = await Promise.all([variant('minimal'), variant(name)]);
      const known = new Set(names(minimal));
      expect(names(objects).filter((line) => !known.has(line))).toMatchSnapshot();
    },
  );
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

describe('the controller', () => {
  const podOf = async (name: keyof typeof VARIANTS) => {
    const { spec } = one(await variant(name), 'Deployment', name === 'everything' ? 'skills' : 'skill-operator');
    return { spec, pod: spec.template.spec, container: spec.template.spec.containers[0] };
  };

  test('reads its settings from a file and its S3 key from a Secret', async () => {
    const { container } = await podOf('minimal');
    expect({ args: container.args, env: container.env }).toMatchInlineSnapshot();
  });
  test('gets a heap below its memory limit', async () => {
    const { container } = await podOf('everything');
    expect(container.env).toContainEqual({ name: 'NODE_OPTIONS', value: '--max-old-space-size=1228' });
  });
  test('takes image, environment, flags, volumes and placement from the values', async () => {
    const { spec, pod, container } = await podOf('everything');
    expect(container.image).toBe(`ghcr.io/tfrobot/skill-operator@sha256:${'1'.repeat(64)}`);
    expect(container.args).toContain('--log-level=debug');
    const env = Object.fromEntries(
      container.env.map((entry: { name: string; value?: string }) => [entry.name, entry.value]),
    );
    expect(env).toMatchObject({
      TZ: 'UTC',
      HTTPS_PROXY: 'http://proxy.example.com:3128',
      NO_PROXY: '.svc,10.0.0.0/8',
      NODE_EXTRA_CA_CERTS: '/etc/skill-operator/ca/ca.crt',
    });
    expect(container.volumeMounts).toContainEqual({ name: 'extra', mountPath: '/extra' });
    expect(spec.replicas).toBe(3);
    expect(pod.priorityClassName).toBe('system-cluster-critical');
    expect(pod.tolerations).toEqual([{ key: 'infra', operator: 'Exists' }]);
    expect(Object.keys(pod.affinity)).toEqual(['nodeAffinity']);
    expect(pod.topologySpreadConstraints[0].labelSelector.matchLabels).toMatchObject({
      'app.kubernetes.io/component': 'controller',
    });
    expect(spec.template.metadata).toMatchObject({
      annotations: { note: 'yes' },
      labels: { tier: 'infra', team: 'platform' },
    });
  });
  test('is started anew when its settings change, and only then', async () => {
    const sum = async (values: Values) =>
      one(await helm.render(values), 'Deployment').spec.template.metadata.annotations['checksum/config'] as string;
    const before = await sum(MINIMAL);
    expect(await sum({ ...MINIMAL, replicas: 2 })).toBe(before);
    expect(await sum({ ...MINIMAL, config: { ...(MINIMAL.config as object), logLevel: 'debug' } })).not.toBe(before);
  });
  test('has no version in a selector, which nobody could change later', async () => {
    for (const object of await variant('everything')) {
      const selector = object.spec?.selector?.matchLabels ?? object.spec?.podSelector?.matchLabels ?? {};
      expect(Object.keys(selector)).not.toContain('app.kubernetes.io/version');
      expect(Object.keys(selector)).not.toContain('helm.sh/chart');
    }
  });
});

describe('the settings file', () => {
  const settingsOf = (objects: K8sObject[], name = 'skill-operator-config') =>
    parse(one(objects, 'ConfigMap', name).data['config.yaml']) as Record<string, unknown>;

  test('of a minimal installation', async () => {
    expect(settingsOf(await variant('minimal'))).toMatchInlineSnapshot();
  });
  test.each(Object.keys(VARIANTS))('is one that the operator takes: %s', async (name) => {
    const settings = settingsOf(await variant(name), name === 'everything' ? 'skills-config' : undefined);
    const store = { ...(settings.store as object), accessKey: 'a', secretKey: 'not-a-secret-of-anybody' };
    expect(() => parseConfig({ ...settings, store })).not.toThrow();
  });
  test('names namespace and image of the builds, and the proxy', async () => {
    const { build } = settingsOf(await variant('everything'), 'skills-config') as { build: Record<string, unknown> };
    expect(build).toMatchObject({
      namespace: 'team-builds',
      operatorImage: `ghcr.io/tfrobot/skill-operator@sha256:${'1'.repeat(64)}`,
      maxImageBytes: 5_000_000_000,
      proxy: {
        http: 'http://proxy.example.com:3128',
        https: 'http://proxy.example.com:3128',
        noProxy: '.svc,10.0.0.0/8',
      },
    });
  });
});

describe('rights', () => {
  test.each([
    ['ClusterRole', 'skill-operator', 'clusterrole.yaml'],
    ['Role', 'skill-operator', 'role.yaml'],
    ['Role', 'skill-operator-builds', 'builds/role.yaml'],
    ['Role', 'skill-operator-ledger', 'builds/ledger-role.yaml'],
  ])('%s %s has the rules of rbac/%s and no other', async (kind, name, file) => {
    expect(one(await variant('builds'), kind, name).rules).toEqual(ruleFile(file).rules);
  });
  test('are those of one namespace, and of the Secrets that the settings name, where one is watched', async () => {
    const objects = await variant('one namespace');
    const own = objects.filter(
      ({ kind, metadata }) => kind === 'ClusterRole' && !/-(editor|viewer)$/.test(metadata.name),
    );
    expect(own).toEqual([]);
    expect(one(objects, 'Role', 'skill-operator-watch')).toMatchObject({
      metadata: { namespace: 'market' },
      rules: ruleFile('clusterrole.yaml').rules,
    });
    expect(one(objects, 'Role', 'skill-operator').rules).toContainEqual({
      apiGroups: [''],
      resources: ['secrets'],
      resourceNames: expect.arrayContaining(['registry', 'e2b', 'pull']),
      verbs: ['get'],
    });
  });
  test('every role is bound to the ServiceAccount of the controller', async () => {
    const objects = await variant('builds');
    const roles = objects.filter(
      ({ kind, metadata }) => /^(Cluster)?Role$/.test(kind) && !/-(editor|viewer)$/.test(metadata.name),
    );
    for (const role of roles) {
      const { roleRef, subjects } = one(objects, `${role.kind}Binding`, role.metadata.name);
      expect(roleRef).toMatchObject({ kind: role.kind, name: role.metadata.name });
      expect(subjects).toEqual([
        { kind: 'ServiceAccount', name: 'skill-operator', namespace: 'skill-operator-system' },
      ]);
    }
    expect(roles.length).toBe(4);
  });
  test('of people end before status and finalizers', async () => {
    const objects = await variant('minimal');
    const of = (name: string) => one(objects, 'ClusterRole', name);
    expect(
      [of('skill-operator-editor'), of('skill-operator-viewer')].map(({ metadata, rules }) => ({
        labels: Object.keys(metadata.labels ?? {}).filter((label) => label.startsWith('rbac')),
        rules,
      })),
    ).toMatchInlineSnapshot();
  });
});

describe('network policies', () => {
  test('of the controller name the ports of S3, registry and engines', async () => {
    const { egress } = one(await variant('builds'), 'NetworkPolicy', 'skill-operator').spec;
    const ports = egress.map((rule: { ports: { port: unknown }[] }) => rule.ports.map(({ port }) => port));
    expect(ports).toEqual([
      [53, 53],
      [443, 6443],
      [22, 80, 443],
      [443, 5443, 3000],
    ]);
  });
  test('of builds are the one of the build room, with the blocks and rules of the settings', async () => {
    const objects = await variant('builds');
    const { blocked, egress } = BUILDS.build.network;
    const wanted = networkPolicy({ namespace: 'team-builds', network: { blocked, egress: egress as never } });
    expect(one(objects, 'NetworkPolicy', 'skill-build').spec).toEqual(wanted.spec);
    expect(one(objects, 'NetworkPolicy', 'default-deny').spec).toEqual({
      podSelector: {},
      policyTypes: ['Ingress', 'Egress'],
    });
  });
  test('let builds reach the bundled S3 server', async () => {
    const { egress } = one(await variant('to try out'), 'NetworkPolicy', 'skill-build').spec;
    expect(egress).toContainEqual(expect.objectContaining({ ports: [{ protocol: 'TCP', port: 9000 }] }));
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
    const [crd] = crds(await helm.render({ ...MINIMAL, crds: { keep: false } }));
    expect(crd?.metadata.annotations).not.toHaveProperty('helm.sh/resource-policy');
  });
});

describe('monitoring', () => {
  /** Names in PromQL that are followed by a selector. */
  const metricsOf = (text: string): string[] => [...text.matchAll(/([a-z_]+)\{/g)].map(([, name]) => name ?? '');

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
