import { GROUP, VERSION } from './labels.ts';

/** An API resource as URLs name it; structurally the `Resource` of the kube room. */
interface ApiResource {
  group: string;
  version: string;
  plural: string;
  kind: string;
  namespaced: boolean;
}

/** marketplacesources.skills.tfrobot.io */
export const MARKETPLACE_SOURCES = {
  group: GROUP,
  version: VERSION,
  plural: 'marketplacesources',
  kind: 'MarketplaceSource',
  namespaced: true,
} as const satisfies ApiResource;

/** skills.skills.tfrobot.io */
export const SKILLS = {
  group: GROUP,
  version: VERSION,
  plural: 'skills',
  kind: 'Skill',
  namespaced: true,
} as const satisfies ApiResource;

/** Core Secrets: read by GET on use, never listed or watched. */
export const SECRETS = {
  group: '',
  version: 'v1',
  plural: 'secrets',
  kind: 'Secret',
  namespaced: true,
} as const satisfies ApiResource;

/** Core ConfigMaps: the operator's own state, and inline content. */
export const CONFIG_MAPS = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
} as const satisfies ApiResource;

/** Core Namespaces: one GET tells the UID that names the installation. */
export const NAMESPACES = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  namespaced: false,
} as const satisfies ApiResource;

/** Jobs of image builds. */
export const JOBS = {
  group: 'batch',
  version: 'v1',
  plural: 'jobs',
  kind: 'Job',
  namespaced: true,
} as const satisfies ApiResource;

/** Pods of those Jobs. */
export const PODS = {
  group: '',
  version: 'v1',
  plural: 'pods',
  kind: 'Pod',
  namespaced: true,
} as const satisfies ApiResource;

/** Core events: the Job controller, scheduler and kubelet say there why a pod does not start. */
export const CORE_EVENTS = {
  group: '',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  namespaced: true,
} as const satisfies ApiResource;
