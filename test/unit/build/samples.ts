import type { Job } from 'kubernetes-types/batch/v1.d.ts';
import type { Container, PodSpec } from 'kubernetes-types/core/v1.d.ts';
import type { BuildInput } from '../../../src/build/input.ts';
import { BUILD_DEFAULTS, type BuildSettings } from '../../../src/build/settings.ts';

/** 64 hex digits that are told apart at a glance. */
export const hex = (digit: string): string => digit.repeat(64);

/** Settings of an installation that says no more than it must. */
export const SETTINGS: BuildSettings = {
  ...BUILD_DEFAULTS,
  installation: 'prod-1',
  namespace: 'skill-builds',
  operatorImage: 'registry.example.com/skill-operator:1.0.0',
  builderImage: `registry.example.com/kaniko@sha256:${hex('a')}`,
  registry: { host: 'registry.example.com', prefix: 'skills', pushSecret: 'registry-push' },
  network: { egress: [] },
};

/** The same with every option in use. */
export const FULL: BuildSettings = {
  ...SETTINGS,
  imagePullSecrets: ['pull'],
  architecture: 'arm64',
  registry: { host: '10.0.0.5:5000', prefix: '', insecure: true },
  baseImages: {
    mirrors: ['mirror.example.com/hub'],
    map: { 'quay.io': 'mirror.example.com/quay' },
    strict: true,
    insecure: ['10.0.0.6:5000'],
  },
  caBundle: { configMap: 'company-ca', key: 'bundle.pem' },
  proxy: { http: 'http://proxy:3128', https: 'http://proxy:3128', noProxy: '10.0.0.0/8' },
  placement: {
    nodeSelector: { pool: 'builds' },
    tolerations: [{ key: 'builds', operator: 'Exists', effect: 'NoSchedule' }],
    runtimeClassName: 'gvisor',
    hostUsers: false,
    priorityClassName: 'low',
  },
};

/** The first attempt of one build. */
export const INPUT: BuildInput = {
  skill: { namespace: 'team-a', name: 'acme.docs.pdf', uid: '3f1c2b4e-0000-4000-8000-000000000001' },
  engine: 'e2b',
  digest: hex('d'),
  inputHash: hex('b'),
  attempt: 1,
  context: { tar: { sha256: hex('1'), size: 4096 }, dockerfile: { sha256: hex('2'), size: 120 } },
};

/** The pod that a build Job makes. */
export const specOf = (job: Job) => job.spec?.template.spec as PodSpec;

/** Containers of a build Job by their names. */
export const containersOf = (job: Job): Record<string, Container> => {
  const { initContainers = [], containers } = specOf(job);
  return Object.fromEntries([...initContainers, ...containers].map((one) => [one.name, one]));
};
