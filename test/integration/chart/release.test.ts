import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { type Cluster, startCluster } from '../../cluster/start.ts';
import { eventually } from '../../support/eventually.ts';
import { CHART, HELM_COMPILE_MS, Helm, MINIMAL } from '../../support/helm.ts';
import { condition, K8s, type K8sObject, type Ref } from '../../support/k8s.ts';
import { BUILDS } from './variants.ts';

/** Install, upgrade, rollback and uninstall with live objects. CRDs are one per cluster, so this file has a cluster of its own. */
const NAMESPACE = 'skill-operator-system';
const VALUES = { ...MINIMAL, config: BUILDS, crds: { keep: true } };
const CRD: Ref = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  name: 'skills.skills.tfrobot.io',
};
const SOURCE: Ref = {
  apiVersion: 'skills.tfrobot.io/v1alpha1',
  kind: 'MarketplaceSource',
  name: 'team',
  namespace: 'default',
};

const BUILD_NAMESPACE: Ref = { apiVersion: 'v1', kind: 'Namespace', name: 'team-builds' };

const helm = new Helm();
let cluster: Cluster;
let k8s: K8s;
let newer: string;

/** The chart of a later release: another version, and one more field in a CRD. */
async function nextRelease(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'skill-operator-chart-'));
  await cp(CHART, folder, { recursive: true });
  const edit = async (file: string, change: (content: K8sObject & { version: string }) => void) => {
    const content = parse(await readFile(join(folder, file), 'utf8'));
    change(content);
    await writeFile(join(folder, file), stringify(content));
  };
  await edit('Chart.yaml', (chart) => {
    chart.version = '0.2.0';
  });
  await edit('files/crds/skills.yaml', ({ spec }) => {
    spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.later = { type: 'string' };
  });
  return folder;
}

const run = (args: string[], values: object = VALUES) =>
  helm.run([...args, '--namespace', NAMESPACE], { values: { ...values }, kubeconfig: cluster.info.kubeconfig });
const ok = async (args: string[], values: object = VALUES): Promise<void> => {
  const { code, stderr } = await run(args, values);
  if (code !== 0) throw new Error(`helm ${args.join(' ')}: ${stderr}`);
};
const bare = (args: string[]) => helm.run([...args, '--namespace', NAMESPACE], { kubeconfig: cluster.info.kubeconfig });

const laterField = async (): Promise<unknown> =>
  (await k8s.get(CRD))?.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.later;
/** The guard is enforced a moment after it was written. */
const guardBites = () =>
  eventually(
    async () => {
      const { 'skills.tfrobot.io/crd-revision': now } = (await k8s.get(CRD))?.metadata.annotations ?? {};
      const back = { metadata: { annotations: { 'skills.tfrobot.io/crd-revision': String(Number(now) - 1) } } };
      const { status, text } = await k8s.api.request('PATCH', `${await k8s.path(CRD)}?dryRun=All`, {
        body: back,
        contentType: 'application/merge-patch+json',
      });
      return status === 422 ? text : undefined;
    },
    { timeoutMs: 30_000, what: 'the policy that guards the CRDs' },
  );

beforeAll(async () => {
  await helm.prepare();
  [cluster, newer] = await Promise.all([startCluster({ kubeconfig: '' }), nextRelease()]);
  k8s = new K8s(cluster.info.kubeconfig);
  await k8s.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
}, HELM_COMPILE_MS);
afterAll(async () => {
  await k8s?.[Symbol.asyncDispose]();
  await cluster?.stop();
  await helm[Symbol.asyncDispose]();
  if (newer) await rm(newer, { recursive: true, force: true });
});

// One life of a release; each step stands on the one before.
describe('a release', { concurrent: false, timeout: 180_000 }, () => {
  test('is installed, and its CRDs take objects', async () => {
    await ok(['install', 'skill-operator', CHART]);
    await k8s.waitFor(CRD, (crd) => condition(crd, 'Established')?.status === 'True');
    await k8s.apply({
      apiVersion: SOURCE.apiVersion,
      kind: SOURCE.kind,
      metadata: { name: SOURCE.name, namespace: 'default' },
      spec: { type: 'git', git: { url: 'https://git.example.com/a.git' } },
    });
    const builds = await k8s.get(BUILD_NAMESPACE);
    expect(builds?.metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'baseline' });
    const text = await guardBites();
    expect(JSON.parse(text).message).toMatchInlineSnapshot(
      `"customresourcedefinitions.apiextensions.k8s.io "skills.skills.tfrobot.io" is forbidden: ValidatingAdmissionPolicy 'skill-operator-crds' with binding 'skill-operator-crds' denied request: CRD skills.skills.tfrobot.io is of a newer release of skill-operator (revision 1000) and must not be taken back to revision 999: fields of stored objects would be lost; to go back to an older operator, run helm upgrade with --version <older> --reuse-values, which leaves the CRDs as they are"`,
    );
  });
  test('is upgraded with live objects, and its CRDs with it', async () => {
    await ok(['upgrade', 'skill-operator', newer]);
    expect(await laterField()).toEqual({ type: 'string' });
    expect(await k8s.get(SOURCE)).toBeDefined();
  });
  test('goes back to the older chart by an upgrade, and the newer CRDs stay', async () => {
    await ok(['upgrade', 'skill-operator', CHART]);
    expect(await laterField()).toEqual({ type: 'string' });
    const deployment = await k8s.get({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      name: 'skill-operator',
      namespace: NAMESPACE,
    });
    expect(deployment?.metadata.labels?.['helm.sh/chart']).toBe('skill-operator-0.1.0');
    expect(await k8s.get(SOURCE)).toBeDefined();
  });
  test('does not take its CRDs back by a rollback to the revision before the upgrade', async () => {
    const { code, stderr } = await bare(['rollback', 'skill-operator', '1']);
    expect(code).toBe(1);
    expect(stderr).toContain('must not be taken back');
    expect(await laterField()).toEqual({ type: 'string' });
    expect(await k8s.get(SOURCE)).toBeDefined();
  });
  test('rolls back between revisions of one release', async () => {
    await ok(['upgrade', 'skill-operator', CHART], { ...VALUES, replicas: 2 });
    const { code, stderr } = await bare(['rollback', 'skill-operator', '3']);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    const deployment = await k8s.get({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      name: 'skill-operator',
      namespace: NAMESPACE,
    });
    expect(deployment?.spec.replicas).toBe(1);
  });
  test('keeps CRDs and objects when it is uninstalled', async () => {
    const { code } = await bare(['uninstall', 'skill-operator']);
    expect(code).toBe(0);
    expect(await k8s.get(SOURCE)).toBeDefined();
    await k8s.waitGone(BUILD_NAMESPACE);
  });
  test('is installed again over its own CRDs, and leaves nothing where crds.keep is false', async () => {
    await ok(['install', 'skill-operator', newer], { ...VALUES, crds: { keep: false } });
    const { code } = await bare(['uninstall', 'skill-operator']);
    expect(code).toBe(0);
    await k8s.waitGone(CRD);
    const kinds: [string, string][] = [
      ['rbac.authorization.k8s.io/v1', 'ClusterRole'],
      ['rbac.authorization.k8s.io/v1', 'ClusterRoleBinding'],
      ['rbac.authorization.k8s.io/v1', 'Role'],
      ['rbac.authorization.k8s.io/v1', 'RoleBinding'],
      ['apps/v1', 'Deployment'],
      ['v1', 'ConfigMap'],
      ['v1', 'Secret'],
      ['v1', 'Service'],
      ['v1', 'ServiceAccount'],
      ['networking.k8s.io/v1', 'NetworkPolicy'],
      ['admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicy'],
      ['admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicyBinding'],
      ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
    ];
    await k8s.waitGone(BUILD_NAMESPACE);
    for (const [apiVersion, kind] of kinds) {
      const left = await k8s.list({ apiVersion, kind, labelSelector: 'app.kubernetes.io/part-of=skill-operator' });
      expect(left.map(({ metadata }) => `${kind} ${metadata.name}`)).toEqual([]);
    }
  });
});
