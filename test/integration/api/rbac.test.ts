import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { K8s, type K8sObject } from '../../support/k8s.ts';
import {
  allowBuilds,
  createOperatorAccount,
  installCrds,
  type OperatorAccount,
} from '../../support/operator-account.ts';
import { GIT_SKILL, GIT_SOURCE } from './objects.ts';

/** The chart's own rights, asked of the real API server as the operator's ServiceAccount. */
const info = inject('cluster');
const admin = new K8s(info.kubeconfig);
let account: OperatorAccount;
let operator: K8s;
let namespace: string;
let source: K8sObject;

beforeAll(async () => {
  await installCrds(info);
  account = await createOperatorAccount(info);
  operator = new K8s(account.kubeconfig);
  namespace = await admin.createNamespace('rbac');
  [source] = (await admin.apply({
    apiVersion: API_VERSION,
    kind: 'MarketplaceSource',
    metadata: { name: 'team', namespace },
    spec: GIT_SOURCE,
  })) as [K8sObject];
  await admin.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'creds', namespace },
    stringData: { a: 'b' },
  });
});
afterAll(async () => {
  await operator[Symbol.asyncDispose]();
  await admin[Symbol.asyncDispose]();
});

/** Whether the operator may do it, as the authorizer says. */
async function may(verb: string, group: string, resource: string, where: string, subresource = ''): Promise<boolean> {
  const { status, text } = await operator.api.request(
    'POST',
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    {
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { verb, group, resource, subresource, namespace: where, name: 'x' } },
      },
    },
  );
  expect(status).toBe(201);
  return JSON.parse(text).status.allowed as boolean;
}

const GROUP = 'skills.tfrobot.io';

describe('the ServiceAccount of the operator', () => {
  test('creates a Skill that blocks the deletion of its source, writes its status and deletes it', async () => {
    const skill = {
      apiVersion: API_VERSION,
      kind: 'Skill',
      metadata: {
        name: 'team.docs.pdf',
        namespace,
        ownerReferences: [
          {
            ...{ apiVersion: API_VERSION, kind: 'MarketplaceSource', name: 'team', uid: source.metadata.uid as string },
            ...{ controller: true, blockOwnerDeletion: true },
          },
        ],
      },
    };
    await operator.apply({ ...skill, spec: GIT_SKILL }, { manager: 'skill-operator-source', force: false });
    await operator.apply({ ...skill, status: { observedGeneration: 1 } }, { subresource: 'status' });
    await operator.delete({ apiVersion: API_VERSION, kind: 'Skill', name: 'team.docs.pdf', namespace });
  });
  test('reads a Secret by its name', async () => {
    expect(await operator.get({ apiVersion: 'v1', kind: 'Secret', name: 'creds', namespace })).toMatchObject({
      data: { a: 'Yg==' },
    });
  });
  test('reads its own Namespace', async () => {
    expect(await operator.get({ apiVersion: 'v1', kind: 'Namespace', name: account.namespace })).toBeDefined();
  });

  test.each([
    ['list', '', 'secrets', ''],
    ['watch', '', 'secrets', ''],
    ['patch', '', 'secrets', ''],
    ['list', '', 'configmaps', ''],
    ['create', '', 'configmaps', ''],
    ['patch', GROUP, 'marketplacesources', ''],
    ['delete', GROUP, 'marketplacesources', ''],
    ['create', GROUP, 'marketplacesources', ''],
    ['update', GROUP, 'skills', ''],
    ['create', 'batch', 'jobs', ''],
    ['create', '', 'pods', ''],
    ['get', 'coordination.k8s.io', 'leases', ''],
    ['escalate', 'rbac.authorization.k8s.io', 'clusterroles', ''],
  ])('may not %s %s/%s in the namespace of a user', async (verb, group, resource, subresource) => {
    expect(await may(verb, group, resource, namespace, subresource)).toBe(false);
  });

  test.each([
    ['patch', GROUP, 'marketplacesources', 'status'],
    ['update', GROUP, 'marketplacesources', 'finalizers'],
    ['watch', GROUP, 'skills', ''],
    ['create', 'events.k8s.io', 'events', ''],
    ['patch', 'events.k8s.io', 'events', ''],
  ])('may %s %s/%s %s everywhere', async (verb, group, resource, subresource) => {
    expect(await may(verb, group, resource, namespace, subresource)).toBe(true);
  });

  test('runs Jobs in the namespace of builds, and neither lists Secrets nor makes pods of its own there', async () => {
    const builds = await admin.createNamespace('builds');
    await allowBuilds(info, account, builds);
    const rights = [
      ...['get', 'list', 'watch', 'create', 'patch', 'delete'].map((verb) => [verb, 'batch', 'jobs']),
      ...['create', 'delete'].map((verb) => [verb, '', 'secrets']),
      ['list', '', 'pods'],
      ['list', '', 'events'],
    ] as [string, string, string][];
    for (const [verb, group, resource] of rights) expect(await may(verb, group, resource, builds), resource).toBe(true);
    for (const verb of ['list', 'patch']) expect(await may(verb, '', 'secrets', builds)).toBe(false);
    expect(await may('create', '', 'pods', builds)).toBe(false);
    expect(await may('get', '', 'pods', builds, 'log')).toBe(true);
    expect(await may('get', '', 'pods', builds, 'exec')).toBe(false);
    expect(await may('create', 'batch', 'jobs', account.namespace)).toBe(false);
    const skillBuilder = { apiVersion: 'v1', kind: 'ServiceAccount', name: 'skill-builder', namespace: builds };
    expect(await admin.get(skillBuilder)).toMatchObject({ automountServiceAccountToken: false });
  });

  test('keeps its Lease and its ConfigMaps in its own namespace', async () => {
    const home = account.namespace;
    expect(await may('create', 'coordination.k8s.io', 'leases', home)).toBe(true);
    expect(await may('patch', 'coordination.k8s.io', 'leases', home)).toBe(true);
    await operator.apply({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'skill-operator-state', namespace: home },
      data: { a: 'b' },
    });
    for (const verb of ['list', 'patch', 'delete']) expect(await may(verb, '', 'configmaps', home)).toBe(true);
    expect(await may('watch', '', 'configmaps', home)).toBe(false);
    expect(await may('list', '', 'secrets', home)).toBe(false);
  });
});
