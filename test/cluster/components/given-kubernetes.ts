import { connect } from '../../support/k8s-client.ts';
import type { Component } from '../component.ts';

/** Stands in for etcd, API server and controller manager when the person gave a kubeconfig. */
export const givenKubernetes: Component = {
  name: 'given-kubernetes',
  needs: [],
  ensureInstalled: async () => undefined,
  start: async (run, signal) => {
    const path = run.host.kubeconfig;
    if (path === undefined) throw new Error('no kubeconfig was given');
    await using api = connect(path);
    run.host.say(`using the cluster ${api.server} of KUBECONFIG=${path}; no API server is started`);
    const problem = await api.request('GET', '/version', { signal, timeoutMs: 10_000 }).then(
      ({ status, text }) => (status === 200 ? undefined : `answers ${status}: ${text.slice(0, 200)}`),
      (error: unknown) => `does not answer: ${error instanceof Error ? error.message : error}`,
    );
    if (problem !== undefined) {
      throw new Error(
        `The cluster ${api.server} of KUBECONFIG=${path} ${problem}. Unset KUBECONFIG to have one started.`,
      );
    }
    run.facts.kubeconfig = path;
  },
  ready: async () => true,
  stop: async () => undefined,
};
