import { once } from 'node:events';
import type { ClusterInfo, NodeInfo } from '../support/cluster-info.ts';
import { startCluster } from './start.ts';

function nodeAddresses({ name, registry, baseRegistry, images, hostAddress }: NodeInfo): string {
  return `
Node ${name}: pods reach this machine as ${hostAddress}, and nothing else outside
  built images      http://${registry.address}   (${registry.username} / ${registry.password})
  base images       http://${baseRegistry.address}   (no credentials)
  a shell           ${images.busybox}
  Kaniko            ${images.kaniko}
`;
}

function addresses({ kubeconfig, s3, git, runDir, node }: ClusterInfo): string {
  return `The cluster is up (files in ${runDir}). In another terminal:

export KUBECONFIG=${kubeconfig}
export AWS_ENDPOINT_URL=${s3.endpoint} AWS_REGION=${s3.region}
export AWS_ACCESS_KEY_ID=${s3.accessKey} AWS_SECRET_ACCESS_KEY=${s3.secretKey}

Git repositories  ${git.root}/<name>.git
  anonymous       ${git.httpUrl}/<name>.git
  with password   ${git.privateUrl}/<name>.git   (${git.username} / ${git.password})
  https           ${git.httpsUrl}/<name>.git   (authority: ${runDir}/pki/git-ca.crt)
  ssh             ${git.sshUrl}/<name>.git
                  (key: ${runDir}/ssh/identity, known_hosts beside it)
${node === undefined ? '' : nodeAddresses(node)}
Ctrl-C stops it and removes everything.`;
}

/** Starts the test cluster for a person: prints its addresses, keeps it until Ctrl-C. An empty kubeconfig starts an API server. */
export async function serve(kubeconfig: string, node = false): Promise<void> {
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => stopping.abort());
  try {
    const cluster = await startCluster({
      say: (line) => console.error(line),
      kubeconfig,
      node,
      signal: stopping.signal,
    });
    console.log(addresses(cluster.info));
    if (!stopping.signal.aborted) await once(stopping.signal, 'abort');
    await cluster.stop();
  } catch (error) {
    if (stopping.signal.aborted) return;
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}
