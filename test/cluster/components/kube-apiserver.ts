import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { connect } from '../../support/k8s-client.ts';
import type { Component, Run } from '../component.ts';
import { addNodeAccounts, kubeconfigText, nodeFlags } from '../node/accounts.ts';
import { ensurePrograms } from '../packages.ts';
import { createAuthority, createServerCert } from '../pki.ts';
import { ensureKubeProgram } from './kube.ts';

const NAME = 'kube-apiserver';
const SERVICE_RANGE = '10.96.0.0/16';
const SERVICE_ADDRESS = '10.96.0.1';

// Nobody needs the endpoints of the Service "kubernetes" then, and a loopback address may not stand in them.
const WITHOUT_NODE = ['--endpoint-reconciler-type=none'];

// Writes only: the log counts what the operator costs the API server, and reads would make it large.
const AUDIT_POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'None', verbs: ['get', 'list', 'watch'] }, { level: 'Metadata' }],
};

/** Paths of the key pair that signs service account tokens. */
export const serviceAccountKeys = (run: Run) => ({
  private: run.path('pki', 'sa.key'),
  public: run.path('pki', 'sa.pub'),
});

/** Path of the certificate of the authority that signs the API server's. */
export const apiAuthority = (run: Run): string => run.path('pki', 'api-ca.crt');

interface Files {
  cert: string;
  key: string;
  /** Flags that only an API server with a node gets. */
  more: readonly string[];
}

async function writeFiles(run: Run, server: string, signal: AbortSignal): Promise<Files> {
  const authority = await createAuthority(run.path('pki'), 'api', signal);
  const service = run.network?.serviceAddress ?? SERVICE_ADDRESS;
  const names = [`IP:${run.address}`, `IP:${service}`, 'DNS:localhost', 'DNS:kubernetes.default.svc'];
  const serving = await createServerCert({ dir: run.path('pki'), name: NAME, authority, names }, signal);
  const pair = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const keys = serviceAccountKeys(run);
  writeFileSync(keys.private, pair.privateKey, { mode: 0o600 });
  writeFileSync(keys.public, pair.publicKey);
  const token = randomBytes(16).toString('hex');
  const caPem = readFileSync(authority.cert, 'utf8');
  writeFileSync(run.path('kubeconfig'), kubeconfigText({ server, caPem, user: 'admin', token }), { mode: 0o600 });
  const accounts = [`${token},admin,1,system:masters`];
  if (run.network) accounts.push(...addNodeAccounts(run, server, caPem));
  writeFileSync(run.path('pki', 'tokens.csv'), `${accounts.join('\n')}\n`, { mode: 0o600 });
  writeFileSync(run.path('audit-policy.yaml'), stringify(AUDIT_POLICY));
  const more = run.network ? await nodeFlags(run, authority, signal) : WITHOUT_NODE;
  return { ...serving, more };
}

function flags(run: Run, port: number, { cert, key, more }: Files): string[] {
  const keys = serviceAccountKeys(run);
  return [
    `--etcd-servers=${run.etcd}`,
    `--bind-address=${run.address}`,
    `--advertise-address=${run.address}`,
    `--secure-port=${port}`,
    `--service-cluster-ip-range=${run.network?.serviceRange ?? SERVICE_RANGE}`,
    `--tls-cert-file=${cert}`,
    `--tls-private-key-file=${key}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${keys.public}`,
    `--service-account-signing-key-file=${keys.private}`,
    `--token-auth-file=${run.path('pki', 'tokens.csv')}`,
    '--authorization-mode=Node,RBAC',
    '--allow-privileged=true',
    '--profiling=false',
    `--audit-policy-file=${run.path('audit-policy.yaml')}`,
    `--audit-log-path=${run.path('audit.log')}`,
    ...more,
  ];
}

/** A real API server with RBAC, an admin kubeconfig and an audit log of writes in `<run>/audit.log`. */
export const kubeApiserver: Component = {
  name: NAME,
  needs: ['etcd', 'node'],
  ensureInstalled: async (run, signal) => {
    await ensureKubeProgram(run, NAME, signal);
    await ensurePrograms([{ probe: ['openssl', 'version'], debianPackage: 'openssl' }], run.host.say, signal);
  },
  start: async (run, signal) => {
    const port = await run.ports.take();
    const files = await writeFiles(run, `https://${run.address}:${port}`, signal);
    run.facts.kubeconfig = run.path('kubeconfig');
    run.facts.auditLog = run.path('audit.log');
    run.processes.start({ name: NAME, file: run.program(NAME), args: flags(run, port, files) });
  },
  ready: async (run, signal) => {
    await using api = connect(run.path('kubeconfig'));
    const { status } = await api.request('GET', '/readyz', { signal });
    return status === 200;
  },
  stop: (run) => run.processes.stop(NAME),
};
