import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import type { ClusterInfo } from './cluster-info.ts';
import { condition, K8s, type K8sObject, parseObjects, refOf } from './k8s.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CHART_NAMESPACE = 'skill-operator-system';
const CHART_BUILDS = 'skill-operator-builds';
const RULES = 'charts/skill-operator/rbac';
const ACCOUNT = 'skill-operator';
const TOKEN_SECONDS = 4 * 60 * 60;

function readAll(folder: string, keep: (name: string) => boolean = () => true): string {
  const dir = join(ROOT, folder);
  const files = readdirSync(dir).filter((name) => name.endsWith('.yaml') && keep(name));
  if (files.length === 0) throw new Error(`${folder} holds no YAML file`);
  return files
    .sort()
    .map((name) => readFileSync(join(dir, name), 'utf8'))
    .join('\n---\n');
}

/** Applies crds/ of the repository and waits until the API serves them. May be called by many tests at once. */
export async function installCrds(info: ClusterInfo): Promise<void> {
  await using k8s = new K8s(info.kubeconfig);
  const applied = await k8s.apply(readAll('crds'));
  for (const crd of applied) {
    await k8s.waitFor(refOf(crd), (object) => condition(object, 'Established')?.status === 'True');
  }
}

/** True for the files of the chart that are about the namespace of builds. */
const isAboutBuilds = (file: string): boolean => file.startsWith('build-');

/** The chart's own rules, moved to another namespace; cluster-wide bindings get a name of their own, so tests do not share one. */
export function rulesFor(yaml: string, namespace: string): K8sObject[] {
  return parseObjects(yaml.replaceAll(CHART_NAMESPACE, namespace)).map((object) =>
    object.kind === 'ClusterRoleBinding'
      ? { ...object, metadata: { ...object.metadata, name: `${object.metadata.name}-${namespace}` } }
      : object,
  );
}

/** What the operator runs as in a test. */
export interface OperatorAccount {
  /** Path of a kubeconfig with a token of the ServiceAccount `skill-operator` and no other right. */
  kubeconfig: string;
  /** The operator's own namespace. */
  namespace: string;
}

/**
 * Creates the operator's ServiceAccount with exactly the rights that the chart ships.
 * Without a namespace it makes one; the kubeconfig lies in the run directory and ends with it.
 */
export async function createOperatorAccount(info: ClusterInfo, namespace?: string): Promise<OperatorAccount> {
  await using k8s = new K8s(info.kubeconfig);
  const home = namespace ?? (await k8s.createNamespace('operator'));
  await k8s.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: ACCOUNT, namespace: home } });
  await k8s.apply(
    rulesFor(
      readAll(RULES, (file) => !isAboutBuilds(file)),
      home,
    ),
  );
  const path = `/api/v1/namespaces/${home}/serviceaccounts/${ACCOUNT}/token`;
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: TOKEN_SECONDS },
  };
  const { status, text } = await k8s.api.request('POST', path, { body });
  if (status !== 201) throw new Error(`no token for ${ACCOUNT} in ${home}: ${status} ${text.slice(0, 300)}`);
  const { token } = (JSON.parse(text) as { status: { token: string } }).status;
  return { kubeconfig: writeKubeconfig(info, home, k8s, token), namespace: home };
}

/** Gives an operator the rights that the chart ships for the namespace of builds, and that namespace its account for build pods. */
export async function allowBuilds(info: ClusterInfo, { namespace }: OperatorAccount, builds: string): Promise<void> {
  await using k8s = new K8s(info.kubeconfig);
  // First the namespace of builds: the name of its Role is the same text.
  await k8s.apply(
    rulesFor(readAll(RULES, isAboutBuilds).replaceAll(`namespace: ${CHART_BUILDS}`, `namespace: ${builds}`), namespace),
  );
}

/** What a kubeconfig says of the API server. */
interface ClusterEntry {
  server: string;
  'certificate-authority-data'?: string;
  'insecure-skip-tls-verify'?: boolean;
}

interface Kubeconfig {
  clusters: [{ name: string; cluster: ClusterEntry }];
}

const readKubeconfig = ({ kubeconfig }: OperatorAccount) => parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig;

/** The API server that an account calls. */
export const clusterOf = (account: OperatorAccount): ClusterEntry => readKubeconfig(account).clusters[0].cluster;

/** The account with a kubeconfig of its own, by which it calls another address, such as a proxy. */
export function withCluster(account: OperatorAccount, cluster: ClusterEntry): OperatorAccount {
  const config = readKubeconfig(account);
  config.clusters[0].cluster = cluster;
  const kubeconfig = `${account.kubeconfig}-behind-proxy`;
  writeFileSync(kubeconfig, stringify(config), { mode: 0o600 });
  return { ...account, kubeconfig };
}

function writeKubeconfig(info: ClusterInfo, namespace: string, k8s: K8s, token: string): string {
  const dir = join(info.runDir, 'kubeconfigs');
  mkdirSync(dir, { recursive: true });
  const file = join(dir, namespace);
  const { server, caPem } = k8s.api;
  const ca = caPem === undefined ? {} : { 'certificate-authority-data': Buffer.from(caPem).toString('base64') };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, ...ca } }],
    users: [{ name: ACCOUNT, user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: ACCOUNT, namespace } }],
    'current-context': 'test',
  };
  writeFileSync(file, stringify(config), { mode: 0o600 });
  return file;
}
