import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { connect } from '../../support/k8s-client.ts';
import type { Component, Run } from '../component.ts';
import { kubeconfigOf, NODE_NAME } from '../node/accounts.ts';
import { cgroupName } from '../node/cgroups.ts';
import { onNode } from '../node/namespace.ts';
import { createServerCert } from '../pki.ts';
import { CONTAINERD_SOCKET } from './containerd.ts';
import { ensureKubeProgram } from './kube.ts';
import { apiAuthority } from './kube-apiserver.ts';

const NAME = 'kubelet';

function settings(run: Run, address: string, serving: { cert: string; key: string }): string {
  return stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address,
    healthzPort: 0,
    // As on a real node: a pod that reaches the kubelet gets nothing from it.
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: apiAuthority(run) },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: serving.cert,
    tlsPrivateKeyFile: serving.key,
    containerRuntimeEndpoint: `unix://${CONTAINERD_SOCKET}`,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${cgroupName(run.dir)}`,
    failCgroupV1: false,
    failSwapOn: false,
    enforceNodeAllocatable: [],
    // A full disk of this machine is no reason to end test pods or to remove the images that tests were given.
    evictionHard: {},
    volumePluginDir: run.path(NAME, 'volume-plugins'),
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    // Nobody serves names here unless a test starts a name server. With an address configured, pods get no warning about that.
    clusterDNS: [run.network?.dnsAddress],
    clusterDomain: 'cluster.local',
    resolvConf: '/dev/null',
    serializeImagePulls: false,
    // Tests wait for what a kubelet notices; the machine is small, but the node runs few pods.
    syncFrequency: '10s',
    nodeStatusUpdateFrequency: '4s',
  });
}

/** The agent that runs the pods bound to the node. */
export const kubelet: Component = {
  name: NAME,
  needs: ['containerd', 'kube-apiserver'],
  ensureInstalled: (run, signal) => ensureKubeProgram(run, NAME, signal),
  start: async (run, signal) => {
    const address = run.network?.nodeAddress ?? '';
    const dir = run.path('pki');
    const authority = { cert: apiAuthority(run), key: run.path('pki', 'api-ca.key') };
    const serving = await createServerCert({ dir, name: NAME, authority, names: [`IP:${address}`] }, signal);
    writeFileSync(run.path('kubelet.yaml'), settings(run, address, serving));
    run.processes.start({
      name: NAME,
      ...onNode(run, run.program(NAME), [
        `--config=${run.path('kubelet.yaml')}`,
        `--kubeconfig=${kubeconfigOf(run, NAME)}`,
        `--hostname-override=${NODE_NAME}`,
        `--node-ip=${address}`,
      ]),
    });
  },
  ready: async (run, signal) => {
    await using api = connect(run.path('kubeconfig'));
    const health = await api.request('GET', `/api/v1/nodes/${NODE_NAME}/proxy/healthz`, { signal });
    if (health.status !== 200) throw new Error(health.text);
    const { text } = await api.request('GET', `/api/v1/nodes/${NODE_NAME}`, { signal });
    const { status } = JSON.parse(text) as {
      status?: { conditions?: { type: string; status: string; message: string }[] };
    };
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready?.status !== 'True') throw new Error(ready?.message ?? 'the node is not registered');
    return true;
  },
  stop: (run) => run.processes.stop(NAME),
};
