/** What the name of a base image tells about it. */

/** The parts of an image reference. */
export interface ImageName {
  /** Registry host, when it is written. */
  host?: string | undefined;
  /** Path components, in lower case. */
  path: string[];
  tag?: string | undefined;
  digest?: string | undefined;
}

/** The base image of CubeSandbox: Ubuntu with envd and the entrypoint that starts it. Source: CubeSandbox's own-image guide. */
export const CUBE_BASE = 'ghcr.io/tencentcloud/cubesandbox-base:2026.16';

/** Tags that move to another release by their meaning; a tag that names a release, or a digest, is pinned. */
const MOVING_TAG =
  /^(?:latest|stable|edge|nightly|main|master|dev|devel|rolling|testing|unstable|sid|lts|current|mainline|slim|alpine)(?:-|$)/;
const CUBE_WORD = /cube-?sandbox/;
/** Distributions that E2B does not prepare, by a component of the image's path. */
const NOT_FOR_E2B =
  /^(?:busybox|ubi\d*|rhel\d*|amazonlinux|oraclelinux|chainguard|wolfi-base|photon|opensuse|leap|tumbleweed)(?:-|$)/;

/** Splits `host/path:tag@digest`. */
export function imageName(image: string): ImageName {
  const [reference = '', digest] = image.split('@', 2);
  const colon = reference.indexOf(':', reference.lastIndexOf('/') + 1);
  const tag = colon < 0 ? undefined : reference.slice(colon + 1);
  const components = (colon < 0 ? reference : reference.slice(0, colon)).split('/');
  const [first = ''] = components;
  const hasHost = components.length > 1 && /[.:]|^localhost$/.test(first);
  const path = (hasHost ? components.slice(1) : components).map((part) => part.toLowerCase());
  return { ...(hasHost ? { host: first } : {}), path, tag, digest };
}

/** True for the empty base that has no files at all. */
export const isScratch = (image: string): boolean => image === 'scratch';

/** True for images without shell and package manager, by their name. */
export function isDistroless(image: string): boolean {
  const { path, tag } = imageName(image);
  return path.some((part) => /(?:^|[-_.])distroless(?:$|[-_.])/.test(part)) || /distroless/.test(tag ?? '');
}

/** True for CubeSandbox's own images and for this project's `cubesandbox-…` images, in any registry. */
export function isCubeBase(image: string): boolean {
  const { path } = imageName(image);
  return CUBE_WORD.test(path.at(-1) ?? '') || path.slice(0, -1).some((part) => /^cube-?sandbox$/.test(part));
}

/** True when E2B is known to refuse the distribution of this image. Source: the list of distributions that E2B prepares. */
export const isUnknownToE2B = (image: string): boolean => imageName(image).path.some((part) => NOT_FOR_E2B.test(part));

/** Why the next build may get another image under this name; undefined when it is pinned. */
export function unpinned(image: string): string | undefined {
  const { tag, digest } = imageName(image);
  if (digest !== undefined || isScratch(image)) return undefined;
  if (tag === undefined) return 'has no tag';
  return MOVING_TAG.test(tag) ? `has the moving tag ${tag}` : undefined;
}
