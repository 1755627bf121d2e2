import type { NetworkPolicyEgressRule } from 'kubernetes-types/networking/v1.d.ts';

/** Quantities of one container, as Kubernetes writes them. */
export interface ContainerResources {
  requests: Readonly<Record<string, string>>;
  limits: Readonly<Record<string, string>>;
}

/** A toleration of core/v1. */
interface Toleration {
  key?: string | undefined;
  operator?: string | undefined;
  value?: string | undefined;
  effect?: string | undefined;
  tolerationSeconds?: number | undefined;
}

/** How images are built; everything that an administrator decides. All optional parts are off where absent. */
export interface BuildSettings {
  /** The installation id. */
  installation: string;
  /** The namespace that all build Jobs run in. */
  namespace: string;
  /** A ServiceAccount without any right in that namespace; its token is never mounted. */
  serviceAccount: string;
  /** Image of this product, for the steps fetch and push. */
  operatorImage: string;
  /** Program and first arguments that start the jobs of that image. */
  jobsCommand: readonly string[];
  /** Kaniko, by digest. */
  builderImage: string;
  imagePullSecrets?: readonly string[] | undefined;
  /** Architecture that is built for, as GOARCH: `amd64`. */
  architecture: string;
  registry: {
    /** Host and port of the registry. */
    host: string;
    /** Repository prefix below which everything of this operator lies; may be empty. */
    prefix: string;
    /** Plain HTTP. For test registries alone. */
    insecure?: boolean | undefined;
    /** Secret of type kubernetes.io/dockerconfigjson in the build namespace that may push; absent: push without credential. */
    pushSecret?: string | undefined;
  };
  /** Where base images come from. */
  baseImages?:
    | {
        /** Hosts that stand for Docker Hub, tried in order. */
        mirrors?: readonly string[] | undefined;
        /** Registry host to the host, with or without a path, that is asked in its place. */
        map?: Readonly<Record<string, string>> | undefined;
        /** Never ask the original host of a mirrored or mapped registry: the map is then the list of allowed sources. */
        strict?: boolean | undefined;
        /** Hosts that speak plain HTTP. */
        insecure?: readonly string[] | undefined;
      }
    | undefined;
  /** ConfigMap in the build namespace with a PEM bundle, trusted beside the system's authorities for registry, mirrors and store. */
  caBundle?: { configMap: string; key: string } | undefined;
  /** Proxies for everything that a build fetches; URLs without credentials, because a build can read them. */
  proxy?: { http?: string | undefined; https?: string | undefined; noProxy?: string | undefined } | undefined;
  deadlines: {
    /** Longest time that a pod may wait for a node, an image or a volume. */
    pendingSeconds: number;
    /** Longest time that it may run. The pod ends after the sum of both. */
    activeSeconds: number;
    /** How long a finished Job and its pod stay for people to look at. */
    keepSeconds: number;
    /** How long the removal of a template or an image is tried before the ledger takes it over (I16). */
    removalSeconds: number;
  };
  resources: { fetch: ContainerResources; build: ContainerResources; push: ContainerResources };
  /** Largest sum of an image's layers, in bytes. */
  maxImageBytes: number;
  placement?:
    | {
        nodeSelector?: Readonly<Record<string, string>> | undefined;
        tolerations?: readonly Toleration[] | undefined;
        /** gVisor or Kata, where the cluster has them. */
        runtimeClassName?: string | undefined;
        /** false: a user namespace of its own, where the nodes can. */
        hostUsers?: boolean | undefined;
        priorityClassName?: string | undefined;
      }
    | undefined;
  limits: {
    /** Builds at once in the installation. */
    total: number;
    /** Builds at once for Skills of one namespace. */
    perNamespace: number;
  };
  network: {
    /** Address blocks that no build reaches over 443; default: those of private networks and metadata services. */
    blocked?: readonly string[] | undefined;
    /** What pods may reach beside DNS and public 443: the registry, the store, mirrors, a private package index. */
    egress: readonly NetworkPolicyEgressRule[];
  };
}

/** What an installation gets that does not say otherwise. */
export const BUILD_DEFAULTS = {
  serviceAccount: 'skill-builder',
  jobsCommand: ['node', 'dist/jobs.js'],
  architecture: 'amd64',
  deadlines: { pendingSeconds: 300, activeSeconds: 1800, keepSeconds: 3600, removalSeconds: 600 },
  resources: {
    fetch: {
      requests: { cpu: '50m', memory: '64Mi', 'ephemeral-storage': '128Mi' },
      limits: { cpu: '1', memory: '512Mi', 'ephemeral-storage': '256Mi' },
    },
    build: {
      requests: { cpu: '500m', memory: '1Gi', 'ephemeral-storage': '4Gi' },
      limits: { cpu: '2', memory: '4Gi', 'ephemeral-storage': '20Gi' },
    },
    push: {
      requests: { cpu: '50m', memory: '128Mi', 'ephemeral-storage': '128Mi' },
      limits: { cpu: '1', memory: '512Mi', 'ephemeral-storage': '256Mi' },
    },
  },
  maxImageBytes: 5_000_000_000,
  limits: { total: 3, perNamespace: 2 },
} as const satisfies Partial<BuildSettings>;

const HOST = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/i;
const IMAGE_BY_DIGEST = /^[^\s@]+@sha256:[0-9a-f]{64}$/;
const REPOSITORY = /^([a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(\/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*)?$/;
/** A week, the longest life of a presigned URL. */
const MAX_URL_SECONDS = 604_800;

/** A proxy with a password would hand that password to every Dockerfile. */
function proxyProblem(name: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const url = URL.parse(value);
  if (!url || !/^https?:$/.test(url.protocol)) return `${name} must be an http or https URL`;
  return url.username || url.password
    ? `${name} must not hold a user or a password: every Dockerfile could read them; allow the build namespace at the proxy instead`
    : undefined;
}

/** Seconds after which the kubelet ends a pod of a build: what it wrote stays readable, unlike after the deadline of a Job. */
export const podSeconds = ({ deadlines }: Pick<BuildSettings, 'deadlines'>): number =>
  deadlines.pendingSeconds + deadlines.activeSeconds;

/** Room for a pod that is told to end; and for one that no kubelet ever took, whose own time does not begin. */
const ENDING_SECONDS = 60;

/** Seconds after which the Job controller ends a build whose pod did not end by itself. */
export const jobSeconds = (settings: Pick<BuildSettings, 'deadlines'>): number => podSeconds(settings) + ENDING_SECONDS;

/** Seconds that a presigned URL of a build has to live: as long as its Job can. */
export const urlSeconds = (settings: Pick<BuildSettings, 'deadlines'>): number => jobSeconds(settings);

function hostProblems(settings: BuildSettings): string[] {
  const { mirrors = [], map = {}, insecure = [] } = settings.baseImages ?? {};
  const hosts: [string, string][] = [
    ['registry.host', settings.registry.host],
    ...[...mirrors, ...Object.values(map)].map((value): [string, string] => [
      'baseImages.mirrors and map',
      value.split('/')[0] ?? '',
    ]),
    ...[...Object.keys(map), ...insecure].map((value): [string, string] => ['baseImages.map and insecure', value]),
  ];
  return hosts
    .filter(([, value]) => !HOST.test(value))
    .map(([name, value]) => `${name} must be host or host:port, found ${JSON.stringify(value)}`);
}

/** What cannot work in these settings, one sentence each; empty: they can be used. */
export function buildSettingsProblems(settings: BuildSettings): string[] {
  const { registry, builderImage, deadlines, proxy, limits } = settings;
  const problems = [
    ...hostProblems(settings),
    IMAGE_BY_DIGEST.test(builderImage) ? undefined : 'builderImage must be pinned: repository@sha256:…',
    REPOSITORY.test(registry.prefix) ? undefined : 'registry.prefix must be a lower-case path such as team/skills',
    settings.jobsCommand.length > 0 ? undefined : 'jobsCommand must name a program',
    urlSeconds(settings) <= MAX_URL_SECONDS ? undefined : 'deadlines must not exceed a week together',
    Math.min(...Object.values(deadlines), limits.total, limits.perNamespace, settings.maxImageBytes) >= 1
      ? undefined
      : 'deadlines, limits and maxImageBytes must be at least 1',
    proxyProblem('proxy.http', proxy?.http),
    proxyProblem('proxy.https', proxy?.https),
  ];
  return problems.filter((problem) => problem !== undefined);
}
