import type { Component } from '../component.ts';
import { kubeconfigOf } from '../node/accounts.ts';
import { ensureKubeProgram } from './kube.ts';

const NAME = 'kube-scheduler';

/** Binds pods to the node. */
export const kubeScheduler: Component = {
  name: NAME,
  needs: ['kube-apiserver'],
  ensureInstalled: (run, signal) => ensureKubeProgram(run, NAME, signal),
  start: async (run) => {
    const kubeconfig = kubeconfigOf(run, NAME);
    run.processes.start({
      name: NAME,
      file: run.program(NAME),
      args: [
        `--kubeconfig=${kubeconfig}`,
        `--authentication-kubeconfig=${kubeconfig}`,
        `--authorization-kubeconfig=${kubeconfig}`,
        '--leader-elect=false',
        '--secure-port=0',
      ],
    });
  },
  ready: async () => true,
  stop: (run) => run.processes.stop(NAME),
};
