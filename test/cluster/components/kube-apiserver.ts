import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { connect } from '../../support/k8s-client.ts';
import type { Component, Run } from '../component.ts';
import { ensurePrograms } from '../packages.ts';
import { createAuthority, createServerCert } from '../pki.ts';
import { ensureKubeProgram } from './kube.ts';

const NAME = 'kube-apiserver';
const SERVICE_RANGE = '10.96.0.0/16';

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

/** A kubeconfig of one user with a token, the authority's certificate inside. */
function kubeconfigText(server: string, caPem: string, token: string): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'test',
        cluster: { server, 'certificate-authority-data': Buffer.from(caPem).toString('base64') },
      },
    ],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
    'current-context': 'test',
  });
}

async function writeFiles(run: Run, signal: AbortSignal): Promise<{ cert: string; key: string; token: string }> {
  const authority = await createAuthority(run.path('pki'), 'api', signal);
  const names = ['IP:127.0.0.1', 'IP:10.96.0.1', 'DNS:localhost', 'DNS:kubernetes.default.svc'];
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
  writeFileSync(run.path('pki', 'tokens.csv'), `${token},admin,1,system:masters\n`, { mode: 0o600 });
  writeFileSync(run.path('audit-policy.yaml'), stringify(AUDIT_POLICY));
  return { ...serving, token };
}

function flags(run: Run, port: number, serving: { cert: string; key: string }): string[] {
  const keys = serviceAccountKeys(run);
  return [
    `--etcd-servers=${run.etcd}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    // Without a node nobody needs the endpoints of the Service "kubernetes", and a loopback address may not stand in them.
    '--endpoint-reconciler-type=none',
    `--secure-port=${port}`,
    `--service-cluster-ip-range=${SERVICE_RANGE}`,
    `--tls-cert-file=${serving.cert}`,
    `--tls-private-key-file=${serving.key}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${keys.public}`,
    `--service-account-signing-key-file=${keys.private}`,
    `--token-auth-file=${run.path('pki', 'tokens.csv')}`,
    '--authorization-mode=Node,RBAC',
    '--allow-privileged=true',
    '--profiling=false',
    `--audit-policy-file=${run.path('audit-policy.yaml')}`,
    `--audit-log-path=${run.path('audit.log')}`,
  ];
}

/** A real API server with RBAC, an admin kubeconfig and an audit log of writes in `<run>/audit.log`. */
export const kubeApiserver: Component = {
  name: NAME,
  needs: ['etcd'],
  ensureInstalled: async (run, signal) => {
    await ensureKubeProgram(run, NAME, signal);
    await ensurePrograms([{ probe: ['openssl', 'version'], debianPackage: 'openssl' }], run.host.say, signal);
  },
  start: async (run, signal) => {
    const port = await run.ports.take();
    const { token, ...serving } = await writeFiles(run, signal);
    const kubeconfig = run.path('kubeconfig');
    const ca = readFileSync(apiAuthority(run), 'utf8');
    writeFileSync(kubeconfig, kubeconfigText(`https://127.0.0.1:${port}`, ca, token), { mode: 0o600 });
    run.facts.kubeconfig = kubeconfig;
    run.facts.auditLog = run.path('audit.log');
    run.processes.start({ name: NAME, file: run.program(NAME), args: flags(run, port, serving) });
  },
  ready: async (run, signal) => {
    await using api = connect(run.path('kubeconfig'));
    const { status } = await api.request('GET', '/readyz', { signal });
    return status === 200;
  },
  stop: (run) => run.processes.stop(NAME),
};
