import { pushImage } from '../../cluster/node/push.ts';
import { coreDnsImage } from '../../cluster/node/services.ts';
import type { NodeInfo } from '../cluster-info.ts';
import type { K8s, K8sObject } from '../k8s.ts';

const NAMESPACE = 'kube-system';
const NAME = 'coredns';
/** Any user may listen on it; the Service shows it as 53. */
const PORT = 1053;
/** The node pulls an image and CoreDNS reads all Services, on a busy machine. */
const READY_MS = 180_000;

const COREFILE = `cluster.local:${PORT} {
    errors
    kubernetes cluster.local
}
`;

const LABELS = { 'k8s-app': 'kube-dns' };
const rbac = 'rbac.authorization.k8s.io/v1';
const metadata = { name: NAME, namespace: NAMESPACE };

/** What CoreDNS may read. */
const RIGHTS: readonly K8sObject[] = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
  {
    apiVersion: rbac,
    kind: 'ClusterRole',
    metadata: { name: NAME },
    rules: [
      { apiGroups: [''], resources: ['endpoints', 'services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
    ],
  },
  {
    apiVersion: rbac,
    kind: 'ClusterRoleBinding',
    metadata: { name: NAME },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: NAME },
    subjects: [{ kind: 'ServiceAccount', ...metadata }],
  },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { Corefile: COREFILE } },
];

const podSpec = (image: string): object => ({
  serviceAccountName: NAME,
  // It is what answers names.
  dnsPolicy: 'Default',
  containers: [
    {
      name: NAME,
      image,
      args: ['-conf', '/etc/coredns/Corefile'],
      volumeMounts: [{ name: 'config', mountPath: '/etc/coredns' }],
      readinessProbe: { tcpSocket: { port: PORT }, periodSeconds: 1 },
    },
  ],
  volumes: [{ name: 'config', configMap: { name: NAME } }],
});

/** Lets pods of the cluster find Services by their names, as on any real one; resolves when it answers. */
export async function startNameServer(
  k8s: K8s,
  node: NodeInfo,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const image = await pushImage(await coreDnsImage({ say }, signal), node.baseRegistry, NAME, signal);
  await k8s.apply(RIGHTS);
  await k8s.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'kube-dns', namespace: NAMESPACE },
    spec: {
      clusterIP: node.dnsAddress,
      selector: LABELS,
      ports: ['UDP', 'TCP'].map((protocol) => ({
        name: protocol.toLowerCase(),
        protocol,
        port: 53,
        targetPort: PORT,
      })),
    },
  });
  await k8s.apply({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata,
    spec: { selector: { matchLabels: LABELS }, template: { metadata: { labels: LABELS }, spec: podSpec(image) } },
  });
  await k8s.waitFor(
    { apiVersion: 'apps/v1', kind: 'Deployment', ...metadata },
    ({ status }) => status?.availableReplicas === 1,
    { timeoutMs: READY_MS, what: 'the name server of the cluster' },
  );
}
