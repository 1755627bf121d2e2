import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { API_VERSION, FINALIZER } from '../../../src/api/labels.ts';
import { imageRepository } from '../../../src/build/names.ts';
import { settingsHash, templateName } from '../../../src/engine/names.ts';
import type { E2BStub } from '../../contract/engine/stubs/e2b.ts';
import type { ClusterInfo } from '../../support/cluster-info.ts';
import { K8s, type Ref } from '../../support/k8s.ts';
import { type Operator, startOperator } from '../../support/operator.ts';
import { allowBuilds, createOperatorAccount } from '../../support/operator-account.ts';
import { temporaryDirectory } from './helpers.ts';

/** A port on which nobody listens. */
export const GONE = '127.0.0.1:9';
const E2B_KEY = 'e2b_aaaaaaaaaaaaaaaa';
const TEMPLATE = { resources: { cpuMillis: 1000, memoryMiB: 1024 } };

/** Where the operator finds what it needs; absent: builds and engines are off. */
interface Outside {
  e2b: string;
  registry: { host: string; username: string; password: string };
}

/** An operator with the settings of builds and engines, but without a node, and Skills that look as if they had been built. */
export interface Installation extends AsyncDisposable {
  operator: Operator;
  builds: string;
  settings: object;
  /** Makes a Skill whose status says that its image was built and registered; `stub` gets the template. */
  built(name: string, more?: { stub?: E2BStub; deletionPolicy?: 'Delete' | 'Orphan' }): Promise<Ref>;
}

const settingsOf = (builds: string, { e2b, registry }: Outside) => ({
  build: {
    namespace: builds,
    operatorImage: 'registry.example.com/skill-operator:0',
    builderImage: `registry.example.com/kaniko@sha256:${'a'.repeat(64)}`,
    registry: { host: registry.host, prefix: 'skills', insecure: true, credentialSecret: 'registry' },
  },
  engines: { e2b: { url: e2b, keySecret: 'e2b' } },
});

async function applySecrets(k8s: K8s, namespace: string, { registry }: Outside): Promise<void> {
  const auth = Buffer.from(`${registry.username}:${registry.password}`).toString('base64');
  const text = JSON.stringify({ auths: { [registry.host]: { auth } } });
  const secret = (name: string, stringData: Record<string, string>, type = 'Opaque') => ({
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, type, stringData },
  });
  const docker = 'kubernetes.io/dockerconfigjson';
  await k8s.apply([secret('registry', { '.dockerconfigjson': text }, docker), secret('e2b', { apiKey: E2B_KEY })]);
}

async function registerTemplate(stub: E2BStub, name: string): Promise<string> {
  const response = await fetch(`${stub.url}/v3/templates`, {
    method: 'POST',
    headers: { 'x-api-key': E2B_KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ name, cpuCount: 1, memoryMB: 1024 }),
  });
  return ((await response.json()) as { templateID: string }).templateID;
}

async function makeBuilt(
  operator: Operator,
  installation: string,
  host: string,
  name: string,
  { stub, deletionPolicy = 'Delete' }: { stub?: E2BStub; deletionPolicy?: 'Delete' | 'Orphan' } = {},
): Promise<Ref> {
  const { k8s, namespace } = operator;
  const identity = { installation, namespace, skill: name, engine: 'e2b' as const };
  const digest = `sha256:${randomBytes(32).toString('hex')}`;
  const image = `${host}/${imageRepository('skills', identity)}@${digest}`;
  const settings = settingsHash(TEMPLATE);
  const template = templateName(name, { ...identity, imageDigest: digest, settings });
  const templateID = stub ? await registerTemplate(stub, template) : 'nobodystemplate00000';
  const served = {
    ...{ version: 'a'.repeat(12), digest: 'a'.repeat(64), manifestSHA256: 'b'.repeat(64), commit: 'c'.repeat(40) },
    ...{ runtime: 'e2b', engine: 'e2b', templateID, image, settings, files: 1, bytes: 1 },
  };
  const ref = operator.skill(name);
  const source = { git: { url: 'https://git.example.com/nobody.git' } };
  const spec = { source, plugin: 'p', path: `plugins/p/skills/${name}`, suspend: true, deletionPolicy };
  await k8s.apply({ apiVersion: API_VERSION, kind: 'Skill', metadata: { name, namespace }, spec });
  await k8s.patch(ref, { status: { skillName: name, runtime: 'e2b', tier: 2, served } }, 'status');
  // Last: the operator takes it off a Skill that holds nothing.
  await k8s.patch(ref, { metadata: { finalizers: [FINALIZER] } });
  return ref;
}

/** Starts an operator; `storeGone` gives it a bucket that does not answer. */
export async function install(
  info: ClusterInfo,
  outside: Outside | undefined,
  more: { storeGone?: boolean } = {},
): Promise<Installation> {
  await using stack = new AsyncDisposableStack();
  const k8s = stack.use(new K8s(info.kubeconfig));
  const directory = stack.use(await temporaryDirectory());
  const account = await createOperatorAccount(info);
  const builds = await k8s.createNamespace('builds', { 'pod-security.kubernetes.io/enforce': 'baseline' });
  await allowBuilds(info, account, builds);
  const settings = outside ? settingsOf(builds, outside) : {};
  if (outside) await applySecrets(k8s, account.namespace, outside);
  const file = join(directory.path, 'settings.yaml');
  writeFileSync(file, stringify(settings));
  const installation = `i-${randomBytes(4).toString('hex')}`;
  const gone = more.storeGone ? ['--store-endpoint', `http://${GONE}`] : [];
  const args = ['--config', file, '--installation', installation, '--sweep', 'false', ...gone];
  const operator = stack.use(await startOperator(info, { account, args }));
  const close = stack.move();
  return {
    operator,
    builds,
    settings,
    built: (name, options) => makeBuilt(operator, installation, outside?.registry.host ?? GONE, name, options),
    [Symbol.asyncDispose]: () => Promise.resolve(close[Symbol.asyncDispose]()),
  };
}

/** Entries of the operator's ledger. */
export async function ledgerOf({ k8s, account }: Operator): Promise<Record<string, unknown>[]> {
  const labelSelector = 'skills.tfrobot.io/ledger=true';
  const maps = await k8s.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: account.namespace, labelSelector });
  return maps.map(({ data }) => JSON.parse(data.entry) as Record<string, unknown>);
}
