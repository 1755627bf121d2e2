import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { networkPolicy } from '../../../src/build/network.ts';
import { CHART, HELM_COMPILE_MS, one } from '../../support/helm.ts';
import type { K8sObject } from '../../support/k8s.ts';
import { BUILDS, Rendered, type VariantName } from './variants.ts';

const rendered = new Rendered();
beforeAll(() => rendered.prepare(), HELM_COMPILE_MS);
afterAll(() => rendered[Symbol.asyncDispose]());
const variant = (name: VariantName): Promise<K8sObject[]> => rendered.of(name);
const ruleFile = (name: string) => parse(readFileSync(join(CHART, 'rbac', name), 'utf8')) as K8sObject;

describe('rights', () => {
  test.each([
    ['ClusterRole', 'skill-operator', 'clusterrole.yaml'],
    ['Role', 'skill-operator', 'role.yaml'],
    ['Role', 'skill-operator-builds', 'build-role.yaml'],
  ])('%s %s has the rules of rbac/%s and no other', async (kind, name, file) => {
    expect(one(await variant('builds'), kind, name).rules).toEqual(ruleFile(file).rules);
  });
  test('are those of single namespaces, and of the Secrets that the settings name, where those are watched', async () => {
    const objects = await variant('two namespaces');
    const own = objects.filter(
      ({ kind, metadata }) => kind === 'ClusterRole' && !/-(editor|viewer)$/.test(metadata.name),
    );
    expect(own).toEqual([]);
    const watching = objects.filter(
      ({ kind, metadata }) => kind === 'Role' && metadata.name === 'skill-operator-watch',
    );
    expect(watching.map(({ metadata, rules }) => [metadata.namespace, rules])).toEqual([
      ['market', ruleFile('clusterrole.yaml').rules],
      ['team', ruleFile('clusterrole.yaml').rules],
    ]);
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
    expect(roles.length).toBe(3);
  });
  test('of people end before status and finalizers', async () => {
    const objects = await variant('minimal');
    const of = (name: string) => one(objects, 'ClusterRole', name);
    expect(
      [of('skill-operator-editor'), of('skill-operator-viewer')].map(({ metadata, rules }) => ({
        labels: Object.keys(metadata.labels ?? {}).filter((label) => label.startsWith('rbac')),
        rules,
      })),
    ).toMatchInlineSnapshot(`
      [
        {
          "labels": [
            "rbac.authorization.k8s.io/aggregate-to-admin",
            "rbac.authorization.k8s.io/aggregate-to-edit",
          ],
          "rules": [
            {
              "apiGroups": [
                "skills.tfrobot.io",
              ],
              "resources": [
                "marketplacesources",
                "skills",
              ],
              "verbs": [
                "get",
                "list",
                "watch",
                "create",
                "update",
                "patch",
                "delete",
                "deletecollection",
              ],
            },
          ],
        },
        {
          "labels": [
            "rbac.authorization.k8s.io/aggregate-to-view",
          ],
          "rules": [
            {
              "apiGroups": [
                "skills.tfrobot.io",
              ],
              "resources": [
                "marketplacesources",
                "skills",
              ],
              "verbs": [
                "get",
                "list",
                "watch",
              ],
            },
          ],
        },
      ]
    `);
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
    expect({ ingress: [], ...one(objects, 'NetworkPolicy', 'skill-build').spec }).toEqual(wanted.spec);
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
