import { connect } from '../../support/k8s-client.ts';
import type { Component, Run } from '../component.ts';
import { ensureKubeProgram, fromAssets } from './kube.ts';
import { apiAuthority, serviceAccountKeys } from './kube-apiserver.ts';

const NAME = 'kube-controller-manager';

// What the tests lean on, and no more: idle controllers cost memory and requests.
const CONTROLLERS = [
  'namespace-controller',
  'garbage-collector-controller',
  'serviceaccount-controller',
  'serviceaccount-token-controller',
  'root-ca-certificate-publisher-controller',
  'clusterrole-aggregation-controller',
  // Image builds without a node: somebody else then plays the kubelet.
  'job-controller',
];

// What pods, Services and quotas need beside.
const NODE_CONTROLLERS = [
  'deployment-controller',
  'endpointslice-controller',
  'node-lifecycle-controller',
  'pod-garbage-collector-controller',
  'replicaset-controller',
  'resourcequota-controller',
  'taint-eviction-controller',
  'ttl-after-finished-controller',
];

/** A folder of the person's own (KUBEBUILDER_ASSETS) usually has no controller manager. */
const isLeftOut = (run: Run): boolean => run.host.assets !== undefined && fromAssets(run, NAME) === undefined;

/** Deletes namespaces and orphans, makes service accounts. */
export const kubeControllerManager: Component = {
  name: NAME,
  needs: ['kube-apiserver'],
  ensureInstalled: async (run, signal) => {
    if (!isLeftOut(run)) return await ensureKubeProgram(run, NAME, signal);
    run.host.say(`KUBEBUILDER_ASSETS has no ${NAME}: namespaces stay Terminating and owned objects stay`);
  },
  start: async (run) => {
    if (isLeftOut(run)) return;
    run.processes.start({
      name: NAME,
      file: run.program(NAME),
      args: [
        `--kubeconfig=${run.path('kubeconfig')}`,
        `--service-account-private-key-file=${serviceAccountKeys(run).private}`,
        `--root-ca-file=${apiAuthority(run)}`,
        `--controllers=${[...CONTROLLERS, ...(run.network ? NODE_CONTROLLERS : [])].join(',')}`,
        '--leader-elect=false',
        '--secure-port=0',
        '--kube-api-qps=200',
        '--kube-api-burst=400',
      ],
    });
  },
  ready: async (run, signal) => {
    if (isLeftOut(run)) return true;
    await using api = connect(run.path('kubeconfig'));
    const { status } = await api.request('GET', '/api/v1/namespaces/default/serviceaccounts/default', { signal });
    return status === 200;
  },
  stop: (run) => run.processes.stop(NAME),
};
