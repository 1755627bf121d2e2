import type { Component } from '../component.ts';
import { kubeconfigOf, NODE_NAME } from '../node/accounts.ts';
import { execOnNode, onNode } from '../node/namespace.ts';
import { ensurePrograms } from '../packages.ts';
import { ensureKubeProgram } from './kube.ts';

const NAME = 'kube-proxy';

/** Makes Service addresses lead to pods. */
export const kubeProxy: Component = {
  name: NAME,
  needs: ['node', 'kube-apiserver', 'kubelet'],
  ensureInstalled: async (run, signal) => {
    await ensureKubeProgram(run, NAME, signal);
    await ensurePrograms([{ probe: ['nft', '--version'], debianPackage: 'nftables' }], run.host.say, signal);
  },
  start: async (run) => {
    const { nodeAddress = '', podRange = '' } = run.network ?? {};
    run.processes.start({
      name: NAME,
      ...onNode(run, run.program(NAME), [
        `--kubeconfig=${kubeconfigOf(run, NAME)}`,
        `--hostname-override=${NODE_NAME}`,
        `--bind-address=${nodeAddress}`,
        `--healthz-bind-address=127.0.0.1:10256`,
        `--metrics-bind-address=127.0.0.1:10249`,
        '--proxy-mode=nftables',
        `--cluster-cidr=${podRange}`,
        // Limits of the whole machine, which are none of the node's business.
        '--conntrack-max-per-core=0',
        '--conntrack-tcp-timeout-established=0',
        '--conntrack-tcp-timeout-close-wait=0',
      ]),
    });
  },
  // The Service of the API server is the first that every cluster has.
  ready: async (run, signal) => {
    const rules = await execOnNode(run, signal, 'nft', 'list', 'table', 'ip', 'kube-proxy');
    return run.network !== undefined && rules.includes(run.network.serviceAddress);
  },
  stop: (run) => run.processes.stop(NAME),
};
