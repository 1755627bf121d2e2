import { createHash } from 'node:crypto';
import { GROUP } from '../api/labels.ts';
import type { Engine } from '../protocol/types.ts';

/** Labels of a build's Job, pod and Secret; every value is short enough and never holds a name that Kubernetes would refuse. */
export const BUILD_LABELS = {
  /** Always `skill-operator`. */
  managedBy: 'app.kubernetes.io/managed-by',
  /** Always `skill-build`; the NetworkPolicy selects by it. */
  component: 'app.kubernetes.io/component',
  /** The installation id. */
  installation: `${GROUP}/installation`,
  /** Namespace of the Skill. */
  namespace: `${GROUP}/namespace`,
  /** metadata.uid of the Skill. */
  skillUID: `${GROUP}/skill-uid`,
  engine: `${GROUP}/engine`,
  /** First twelve hex digits of the package's digest. */
  version: `${GROUP}/version`,
  /** Number of the attempt, from 1. */
  attempt: `${GROUP}/attempt`,
} as const;

/** Value of the component label. */
export const BUILD_COMPONENT = 'skill-build';

/** Annotations of the same objects: what is too long for a label. */
export const BUILD_ANNOTATIONS = {
  /** `<namespace>/<name>` of the Skill. */
  skill: `${GROUP}/skill`,
  /** Digest of the package, 64 hex digits. */
  digest: `${GROUP}/digest`,
  /** Hash of everything that shapes the image, 64 hex digits. */
  inputHash: `${GROUP}/input-hash`,
  /** Host and repository that the image is pushed to. */
  image: `${GROUP}/image`,
} as const;

/** Whose build it is and of what. */
export interface BuildIdentity {
  /** The installation id. */
  installation: string;
  /** Namespace of the Skill. */
  namespace: string;
  /** metadata.name of the Skill. */
  skill: string;
  /** metadata.uid of the Skill: one of the same name created anew never meets the Jobs of its forerunner. */
  uid: string;
  engine: Engine;
  /** 64 hex digits. */
  inputHash: string;
}

const hex = (fields: readonly string[], length: number): string =>
  createHash('sha256').update(JSON.stringify(fields)).digest('hex').slice(0, length);

/**
 * Name of the Job of one attempt, and of its Secret: `sb-<16 hex>-<attempt>`, never above the 63 characters that a pod's job-name label takes.
 * The same identity and attempt give the same name, so a second operator adopts instead of building twice.
 */
export function jobName(identity: BuildIdentity, attempt: number): string {
  const { installation, namespace, skill, uid, engine, inputHash } = identity;
  return `sb-${hex(['build/v1', installation, namespace, skill, uid, engine, inputHash], 16)}-${attempt}`;
}

const MAX_READABLE = 40;

/**
 * The repository of a Skill's images for one engine, without registry host: `<prefix>/<installation>/<ns>/<name ≤ 40>-<8 hex>-<engine>`.
 * One repository per Skill and engine, because deleting by digest takes every tag of that digest in a repository.
 */
export function imageRepository(
  prefix: string,
  identity: Pick<BuildIdentity, 'installation' | 'namespace' | 'skill' | 'engine'>,
): string {
  const { installation, namespace, skill, engine } = identity;
  const readable = skill.slice(0, MAX_READABLE).replaceAll(/[.-]+$/g, '');
  const hash = hex(['repository/v1', installation, namespace, skill, engine], 8);
  return [prefix, installation, namespace, `${readable}-${hash}-${engine}`].filter((part) => part !== '').join('/');
}

/**
 * Tag that an image is pushed under, from its digest `sha256:<64 hex>`: it keeps registries from collecting the image as untagged and
 * never moves, so registries with immutable tags take it. Images are asked for by digest alone.
 */
export const imageTag = (digest: string): string => digest.slice('sha256:'.length, 'sha256:'.length + 32);

/** `<host>/<repository>@sha256:<64 hex>`, the only form in which an image reaches an engine. */
export const pinnedImage = (host: string, repository: string, digest: string): string =>
  `${host}/${repository}@${digest}`;

const PINNED = /^([^/@\s]+)\/([^@\s]+)@(sha256:[0-9a-f]{64})$/;

/** Host, repository and digest of a pinned image; undefined when it is none. */
export function parsePinned(image: string): { host: string; repository: string; digest: string } | undefined {
  const [, host, repository, digest] = PINNED.exec(image) ?? [];
  return host && repository && digest ? { host, repository, digest } : undefined;
}

/** Whether an image lies in the repository that this Skill derives: only then may it be deleted for it. */
export function ownsImage(image: string, host: string, repository: string): boolean {
  const parsed = parsePinned(image);
  return parsed?.host === host && parsed.repository === repository;
}
