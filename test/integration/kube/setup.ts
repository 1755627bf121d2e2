import { randomBytes } from 'node:crypto';
import { KubeConfig } from '@kubernetes/client-node';
import { inject } from 'vitest';
import type { KubeClientOptions } from '../../../src/kube/caller.ts';
import { loadKubeConfig } from '../../../src/kube/connection.ts';
import { KubeClient } from '../../../src/kube/rest.ts';
import type { KubeObject, Resource } from '../../../src/kube/types.ts';

export const CONFIG_MAPS: Resource = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};
const NAMESPACES: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

/** A signal that never aborts. */
export const signal = new AbortController().signal;

/** Path of the test cluster's kubeconfig. */
export const kubeconfigPath = (): string => inject('cluster').kubeconfig;

/** A client of the test cluster, past every proxy. */
export const directClient = (over: Partial<KubeClientOptions> = {}): KubeClient =>
  new KubeClient({ load: () => loadKubeConfig(kubeconfigPath()), version: 'test', component: 'test', ...over });

/** A client of a plain HTTP address, with a token where one is given. */
export const clientOf = (server: string, token?: () => string, over: Partial<KubeClientOptions> = {}): KubeClient =>
  new KubeClient({
    load: () => {
      const config = new KubeConfig();
      const user = { name: 'u', ...(token ? { token: token() } : {}) };
      config.loadFromClusterAndUser({ name: 'c', server, skipTLSVerify: true }, user);
      return config;
    },
    version: 'test',
    component: 'test',
    ...over,
  });

/** Creates a namespace of a name nobody else uses. */
export async function makeNamespace(client: KubeClient): Promise<string> {
  const name = `kube-${randomBytes(4).toString('hex')}`;
  await client.create(NAMESPACES, '', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, signal);
  return name;
}

export const dropNamespace = (client: KubeClient, name: string): Promise<void> =>
  client.delete(NAMESPACES, '', name, {}, signal);

export const configMap = (namespace: string, name: string, data: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace },
  data,
});
