import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import type { Run } from '../component.ts';
import { type Authority, createClientCert } from '../pki.ts';

/** Name of the one Node. */
export const NODE_NAME = 'node1';

/** The node's programs with the names and groups that the API server's own roles are made for. */
const ACCOUNTS = {
  kubelet: { user: `system:node:${NODE_NAME}`, groups: 'system:nodes' },
  'kube-scheduler': { user: 'system:kube-scheduler', groups: '' },
  'kube-proxy': { user: 'system:kube-proxy', groups: '' },
};

/** Path of the kubeconfig of one of the node's programs. */
export const kubeconfigOf = (run: Run, program: keyof typeof ACCOUNTS): string =>
  run.path('pki', `${program}.kubeconfig`);

/** A kubeconfig of one user with a token, the authority's certificate inside. */
export function kubeconfigText(of: { server: string; caPem: string; user: string; token: string }): string {
  const cluster = { server: of.server, 'certificate-authority-data': Buffer.from(of.caPem).toString('base64') };
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster }],
    users: [{ name: of.user, user: { token: of.token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: of.user } }],
    'current-context': 'test',
  });
}

/** Writes the kubeconfigs of the node's programs; returns their lines for the API server's token file. */
export function addNodeAccounts(run: Run, server: string, caPem: string): string[] {
  return Object.entries(ACCOUNTS).map(([program, { user, groups }]) => {
    const token = randomBytes(16).toString('hex');
    const file = kubeconfigOf(run, program as keyof typeof ACCOUNTS);
    writeFileSync(file, kubeconfigText({ server, caPem, user, token }), { mode: 0o600 });
    return `${token},${user},${user},"${groups}"`;
  });
}

/** Flags of an API server that talks to a kubelet (logs, exec): both show certificates of the run's authority. */
export async function nodeFlags(run: Run, authority: Authority, signal: AbortSignal): Promise<string[]> {
  const client = await createClientCert(
    {
      dir: run.path('pki'),
      name: 'kubelet-client',
      authority,
      subject: '/O=system:masters/CN=kube-apiserver-kubelet-client',
    },
    signal,
  );
  return [
    '--enable-admission-plugins=NodeRestriction',
    '--kubelet-preferred-address-types=InternalIP',
    `--kubelet-certificate-authority=${authority.cert}`,
    `--kubelet-client-certificate=${client.cert}`,
    `--kubelet-client-key=${client.key}`,
  ];
}
