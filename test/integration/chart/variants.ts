import { Helm, MINIMAL, type Values } from '../../support/helm.ts';
import type { K8sObject } from '../../support/k8s.ts';

const DIGEST = `sha256:${'1'.repeat(64)}`;

/** Settings of builds and engines as an installation has them. */
export const BUILDS = {
  store: { endpoint: 'https://minio.example.com', bucket: 'skills' },
  build: {
    namespace: 'team-builds',
    builderImage: `registry.example.com/kaniko@${DIGEST}`,
    registry: { host: 'registry.example.com:5443', pushSecret: 'push', credentialSecret: 'registry' },
    maxImageBytes: 5_000_000_000,
    network: {
      blocked: ['10.0.0.0/8', 'fc00::/7'],
      egress: [{ to: [{ ipBlock: { cidr: '10.1.2.3/32' } }], ports: [{ protocol: 'TCP', port: 5443 }] }],
    },
  },
  engines: {
    e2b: { url: 'https://api.e2b.example.com', keySecret: 'e2b' },
    cubesandbox: { url: 'http://cube.example.com:3000', pullSecret: 'pull' },
  },
};

/** Ways to install the chart that differ in what is rendered. */
export const VARIANTS = {
  minimal: MINIMAL,
  'two replicas': { ...MINIMAL, replicas: 2 },
  builds: { ...MINIMAL, config: BUILDS },
  'two namespaces': { ...MINIMAL, config: { ...BUILDS, watchNamespaces: ['market', 'team'] } },
  monitoring: {
    ...MINIMAL,
    metrics: {
      serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
      prometheusRule: { enabled: true },
      dashboard: { enabled: true },
    },
  },
  'to try out': { bundledS3: { enabled: true, size: '2Gi' }, config: { build: BUILDS.build } },
  webhooks: {
    ...MINIMAL,
    replicas: 2,
    webhook: {
      enabled: true,
      ingress: { enabled: true, className: 'nginx', host: 'hooks.example.com', tlsSecret: 'hooks-tls' },
      httpRoute: {
        parentRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'public', namespace: 'gateways' }],
        hostnames: ['hooks.example.com'],
      },
    },
    networkPolicy: {
      webhookFrom: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress-nginx' } } }],
    },
  },
  'without rights and CRDs': {
    ...MINIMAL,
    crds: { enabled: false },
    rbac: { create: false, aggregateToDefaultRoles: false },
    serviceAccount: { create: false, name: 'given' },
    networkPolicy: { enabled: false },
  },
  everything: {
    ...MINIMAL,
    config: BUILDS,
    fullnameOverride: 'skills',
    commonLabels: { team: 'platform' },
    image: { digest: DIGEST, pullPolicy: 'Always' },
    imagePullSecrets: [{ name: 'pull' }],
    replicas: 3,
    resources: { requests: { cpu: '1' }, limits: { cpu: '2', memory: '2Gi' } },
    proxy: {
      http: 'http://proxy.example.com:3128',
      https: 'http://proxy.example.com:3128',
      noProxy: '.svc,10.0.0.0/8',
    },
    customCA: { configMap: 'company-ca' },
    priorityClassName: 'system-cluster-critical',
    tolerations: [{ key: 'infra', operator: 'Exists' }],
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'infra', operator: 'Exists' }] }],
        },
      },
    },
    topologySpreadConstraints: [
      { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' },
    ],
    podAnnotations: { note: 'hello' },
    podLabels: { tier: 'infra' },
    extraEnv: [{ name: 'TZ', value: 'UTC' }],
    extraArgs: ['--log-level=debug'],
    extraVolumes: [{ name: 'extra', emptyDir: {} }],
    extraVolumeMounts: [{ name: 'extra', mountPath: '/extra' }],
    extraObjects: [
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: '{{ .Release.Name }}-extra', namespace: '{{ .Release.Namespace }}' },
        data: { a: 'b' },
      },
    ],
    networkPolicy: {
      metricsFrom: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
      dnsTo: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } } }],
      extraEgress: [{ to: [{ ipBlock: { cidr: '10.9.0.0/16' } }] }],
    },
  },
} as const satisfies Record<string, Values>;

/** Name of a variant. */
export type VariantName = keyof typeof VARIANTS;

/** The variants as Helm renders them, each once. */
export class Rendered implements AsyncDisposable {
  readonly #helm = new Helm();
  readonly #known = new Map<VariantName, Promise<K8sObject[]>>();

  /** Compiles Helm if need be; call it in a hook with `HELM_COMPILE_MS`. */
  prepare(): Promise<void> {
    return this.#helm.prepare();
  }

  /** The objects of a variant; nobody may change them. */
  of(name: VariantName): Promise<K8sObject[]> {
    const known = this.#known.get(name) ?? this.#helm.render(VARIANTS[name]);
    this.#known.set(name, known);
    return known;
  }

  /** The objects of other values. */
  values(values: Values): Promise<K8sObject[]> {
    return this.#helm.render(values);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#helm[Symbol.asyncDispose]();
  }
}
