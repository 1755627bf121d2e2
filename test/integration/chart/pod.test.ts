import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '../../../src/config.ts';
import { HELM_COMPILE_MS, MINIMAL, one, type Values } from '../../support/helm.ts';
import type { K8sObject } from '../../support/k8s.ts';
import { Rendered, VARIANTS, type VariantName } from './variants.ts';

const rendered = new Rendered();
beforeAll(() => rendered.prepare(), HELM_COMPILE_MS);
afterAll(() => rendered[Symbol.asyncDispose]());
const variant = (name: VariantName): Promise<K8sObject[]> => rendered.of(name);

describe('the controller', () => {
  const podOf = async (name: VariantName) => {
    const { spec } = one(await variant(name), 'Deployment', name === 'everything' ? 'skills' : 'skill-operator');
    return { spec, pod: spec.template.spec, container: spec.template.spec.containers[0] };
  };

  test('reads its settings from a file and its S3 key from a Secret', async () => {
    const { container } = await podOf('minimal');
    expect({ args: container.args, env: container.env }).toMatchInlineSnapshot(`
      {
        "args": [
          "dist/main.js",
          "--config=/etc/skill-operator/settings/config.yaml",
        ],
        "env": [
          {
            "name": "SKILL_OPERATOR_STORE_ACCESS_KEY",
            "valueFrom": {
              "secretKeyRef": {
                "key": "accessKey",
                "name": "skill-store",
              },
            },
          },
          {
            "name": "SKILL_OPERATOR_STORE_SECRET_KEY",
            "valueFrom": {
              "secretKeyRef": {
                "key": "secretKey",
                "name": "skill-store",
              },
            },
          },
          {
            "name": "NODE_OPTIONS",
            "value": "--max-semi-space-size=8 --max-old-space-size=460",
          },
        ],
      }
    `);
  });
  test('gets a heap below its memory limit', async () => {
    const { container } = await podOf('everything');
    expect(container.env).toContainEqual({
      name: 'NODE_OPTIONS',
      value: '--max-semi-space-size=8 --max-old-space-size=1228',
    });
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
      annotations: { note: 'hello' },
      labels: { tier: 'infra', team: 'platform' },
    });
  });
  test('is started anew when its settings change, and only then', async () => {
    const sum = async (values: Values) =>
      one(await rendered.values(values), 'Deployment').spec.template.metadata.annotations['checksum/config'] as string;
    const before = await sum(MINIMAL);
    expect(await sum({ ...MINIMAL, replicas: 2 })).toBe(before);
    const sumWith = (setting: object) => sum({ ...MINIMAL, config: { ...(MINIMAL.config as object), ...setting } });
    expect(await sumWith({ skillWorkers: 5 })).not.toBe(before);
    // The operator takes that over by itself.
    expect(await sumWith({ logLevel: 'debug' })).toBe(before);
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
    expect(settingsOf(await variant('minimal'))).toMatchInlineSnapshot(`
      {
        "leaderElection": true,
        "metricsAddress": ":8080",
        "mirrorDir": "/var/lib/skill-operator/mirrors",
        "mirrorDiskMiB": 8192,
        "operatorNamespace": "skill-operator-system",
        "store": {
          "bucket": "skills",
          "endpoint": "https://minio.example.com",
        },
      }
    `);
  });
  test.each(Object.keys(VARIANTS) as VariantName[])('is one that the operator takes: %s', async (name) => {
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
