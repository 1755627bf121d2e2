import { chmod, symlink, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { stringify } from 'yaml';
import type { Finding } from '../../../src/cli/doctor/finding.ts';
import { E2BStub } from '../../contract/engine/stubs/e2b.ts';
import type { K8sObject } from '../../support/k8s.ts';
import { startRegistry } from '../build/registries.ts';
import { GONE, type Installation, install } from './byo.ts';
import { repository, skillctl, spawnProgram, temporaryDirectory } from './helpers.ts';

const info = inject('cluster');
/** For a machine on which everything takes five times as long. */
const slow = { timeout: 300_000 };

/** What the chart makes of these settings, as far as doctor reads it. */
function chartObjects({ operator, settings }: Installation, bucket: string): K8sObject[] {
  const { namespace } = operator.account;
  const labels = { 'app.kubernetes.io/part-of': 'skill-operator', 'app.kubernetes.io/component': 'controller' };
  const { endpoint, accessKey, secretKey } = info.s3;
  const config = stringify({ ...settings, watchNamespaces: [operator.namespace], store: { endpoint, bucket } });
  const env = (name: string, key: string) => ({ name, valueFrom: { secretKeyRef: { name: 'store', key } } });
  const container = {
    name: 'controller',
    image: 'registry.example.com/skill-operator:0',
    env: [env('SKILL_OPERATOR_STORE_ACCESS_KEY', 'accessKey'), env('SKILL_OPERATOR_STORE_SECRET_KEY', 'secretKey')],
  };
  const spec = {
    serviceAccountName: 'skill-operator',
    containers: [container],
    volumes: [{ name: 'config', configMap: { name: 'skills-config' } }],
  };
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'store', namespace }, stringData: { accessKey, secretKey } },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'skills-config', namespace },
      data: { 'config.yaml': config },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'skills', namespace, labels: { ...labels, 'app.kubernetes.io/instance': 'my-release' } },
      spec: { replicas: 0, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  ];
}

test('doctor asks everything that the operator needs, and logs fall back to what the status keeps', slow, async () => {
  await using temporary = await temporaryDirectory();
  await using stub = await new E2BStub().listen();
  await using registry = await startRegistry({ auth: 'basic' });
  await using stage = await install(info, { e2b: stub.url, registry });
  const { operator, builds } = stage;
  const { k8s, namespace, account, bucket } = operator;
  await k8s.apply(chartObjects(stage, bucket));
  const flags = ['--kubeconfig', info.kubeconfig, '-n', namespace, '--operator-namespace', account.namespace];
  const doctor = async (...args: string[]) => {
    const { code, out, err } = await skillctl('/', 'doctor', '-o', 'json', ...args, ...flags);
    expect(out, err).not.toBe('');
    const { findings } = JSON.parse(out) as { findings: Finding[] };
    // Other test files leave objects in this cluster, and what their operators said of them counts as well.
    const own = findings.filter(({ message }) => !message.startsWith('the operator says'));
    return { code, of: (check: string) => own.filter((one) => one.check === check) };
  };

  const well = await doctor();
  const levels = Object.fromEntries(
    [
      'API server',
      'CRDs',
      'your rights',
      'operator rights',
      'Lease',
      'store',
      'registry',
      'engine e2b',
      'Pod Security',
      'blocks',
      'ledger',
    ].map((check) => [
      check,
      [...new Set(well.of(check).map(({ level, message }) => `${level}${level === 'ok' ? '' : ` ${message}`}`))].join(),
    ]),
  );
  expect(new Set(Object.values(levels)), JSON.stringify(levels)).toEqual(new Set(['ok']));
  expect([well.code, well.of('Deployment')]).toMatchObject([1, [{ level: 'FAIL', message: 'skills is scaled to 0' }]]);
  expect(well.of('kubelet')).toMatchObject([{ level: 'warn', fix: 'see the check Deployment' }]);

  const state = { token: 't', message: '4 of 5 packages are missing', allow: 'kubectl annotate …' };
  await k8s.apply([
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'skill-operator-state', namespace: account.namespace },
      data: { StoreSuspect: JSON.stringify(state) },
    },
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: builds, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    },
  ]);
  stub.keys.clear();
  await k8s.delete({ apiVersion: 'v1', kind: 'Secret', name: 'registry', namespace: account.namespace });
  await k8s.delete({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    name: 'skill-operator',
    namespace: account.namespace,
  });
  const broken = await doctor();
  expect(broken.of('blocks')).toMatchObject([{ level: 'warn', fix: 'if that is meant: kubectl annotate …' }]);
  expect(broken.of('Pod Security')).toMatchObject([{ level: 'FAIL', message: expect.stringContaining('restricted') }]);
  expect(broken.of('engine e2b')).toMatchObject([{ level: 'FAIL' }]);
  expect(broken.of('registry')).toMatchObject([{ level: 'FAIL', message: expect.stringContaining('Secret registry') }]);
  expect(broken.of('operator rights')).toMatchObject([
    { level: 'FAIL', message: expect.stringContaining('patch leases.coordination.k8s.io in') },
  ]);

  // What the operator may read is not what its own account may look at: every check says so, none fails for it.
  const { out } = await skillctl(
    '/',
    'doctor',
    '--kubeconfig',
    account.kubeconfig,
    '-n',
    namespace,
    '--operator-namespace',
    account.namespace,
  );
  expect(out).toMatch(/\nwarn {2}your rights +not enough for logs: list pods/);
  expect(out).toMatch(/\nwarn {2}\w[\w ]* +not looked at/);
  const nowhere = await skillctl('/', 'doctor', '-o', 'json', '--kubeconfig', await unreachable(temporary.path));
  expect([nowhere.code, JSON.parse(nowhere.out).findings]).toMatchObject([1, [{ check: 'API server', level: 'FAIL' }]]);

  await stage.built('image', { stub });
  const candidate = {
    ...(await k8s.get(operator.skill('image')))?.status.served,
    phase: 'Failed',
    reason: 'BuildCommandFailed',
  };
  const failed = { ...candidate, message: 'RUN false failed', logTail: 'first\n\u001b[31mlast' };
  await k8s.patch(operator.skill('image'), { status: { candidate: failed } }, 'status');
  const logs = await skillctl('/', 'logs', '--build', 'image', '--build-namespace', builds, ...flags);
  expect(logs).toEqual({
    code: 1,
    out: 'kept  first\nkept  last\n',
    err: `No build pod of image is left in namespace ${builds}.\nThe end of the log, as status.candidate.logTail keeps it:\nBuildCommandFailed: RUN false failed\n`,
  });
});

/** A kubeconfig of an API server that does not answer. */
async function unreachable(path: string): Promise<string> {
  const file = join(path, 'config');
  const named = { name: 'c', cluster: { server: `https://${GONE}` } };
  const context = { name: 'c', context: { cluster: 'c', user: 'c' } };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [named],
    users: [{ name: 'c', user: {} }],
    contexts: [context],
    'current-context': 'c',
  };
  await writeFile(file, stringify(config));
  return file;
}

test('the one-file bundle works as kubectl skills', slow, async () => {
  await using temporary = await temporaryDirectory();
  const built = await spawnProgram(process.execPath, ['scripts/build.ts', '--outdir', temporary.path, 'skillctl'], {
    cwd: repository,
  });
  expect(built).toMatchObject({ code: 0, err: '' });
  const node = join(temporary.path, 'node');
  await symlink(process.execPath, node);
  const env = { PATH: [temporary.path, process.env.PATH].join(delimiter), KUBECONFIG: info.kubeconfig };
  const plugin = join(temporary.path, 'kubectl-skills');
  const direct = await spawnProgram(plugin, ['get', '-n', 'kube-public'], { cwd: temporary.path, env });
  expect(direct).toMatchObject({ code: 0, err: expect.stringContaining('in namespace kube-public') });
  const kubectl = await spawnProgram('sh', ['-c', 'command -v kubectl'], { cwd: temporary.path, env });
  // Where there is no kubectl, a program of that name that starts plugins in its way stands in.
  if (kubectl.code !== 0) {
    await writeFile(join(temporary.path, 'kubectl'), '#!/bin/sh\nplugin="kubectl-$1"\nshift\nexec "$plugin" "$@"\n');
    await chmod(join(temporary.path, 'kubectl'), 0o755);
  }
  const through = await spawnProgram('kubectl', ['skills', 'get', '-n', 'kube-public'], { cwd: temporary.path, env });
  expect(through).toEqual(direct);
  const help = await spawnProgram('kubectl', ['skills', 'trace', '--help'], { cwd: temporary.path, env });
  expect(help.out).toMatch(/^Usage: kubectl skills trace /);
});
