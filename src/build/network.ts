import type { NetworkPolicy, NetworkPolicyEgressRule } from 'kubernetes-types/networking/v1.d.ts';
import { MANAGED_BY } from '../api/labels.ts';
import { BUILD_COMPONENT, BUILD_LABELS } from './names.ts';
import type { BuildSettings } from './settings.ts';

/** Address blocks of private networks, of the machine itself and of cloud metadata services. */
const PRIVATE_BLOCKS = [
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
  'fc00::/7',
  'fe80::/10',
] as const;

const DNS: NetworkPolicyEgressRule = {
  ports: [
    { protocol: 'UDP', port: 53 },
    { protocol: 'TCP', port: 53 },
  ],
};

function publicHTTPS(blocked: readonly string[]): NetworkPolicyEgressRule {
  const block = (cidr: string, six: boolean) => ({
    ipBlock: { cidr, except: blocked.filter((one) => one.includes(':') === six) },
  });
  return { to: [block('0.0.0.0/0', false), block('::/0', true)], ports: [{ protocol: 'TCP', port: 443 }] };
}

/**
 * What build pods may reach: DNS, public addresses on 443, and what `network.egress` lists. Nothing reaches them.
 * Pods of other components are not touched. A cluster needs a network plugin that enforces policies; addresses alone can be named, not hosts.
 */
export function networkPolicy(settings: Pick<BuildSettings, 'namespace' | 'network'>): NetworkPolicy {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: BUILD_COMPONENT,
      namespace: settings.namespace,
      labels: { [BUILD_LABELS.managedBy]: MANAGED_BY, [BUILD_LABELS.component]: BUILD_COMPONENT },
    },
    spec: {
      podSelector: { matchLabels: { [BUILD_LABELS.component]: BUILD_COMPONENT } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [],
      egress: [DNS, publicHTTPS(settings.network.blocked ?? PRIVATE_BLOCKS), ...settings.network.egress],
    },
  };
}
