/** The manifest of one image, read with distrust. Source: OCI image-spec 1.1, Docker image manifest version 2 schema 2. */
import { isDigest } from './result.ts';

const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const DOCKER_MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';

/** Media types of a single image. */
export const IMAGE_TYPES: ReadonlySet<string> = new Set([OCI_MANIFEST, DOCKER_MANIFEST]);
/** Media types of a list of images; some registries answer 404 to a request that does not accept what they hold. */
export const INDEX_TYPES: ReadonlySet<string> = new Set([
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
]);

const CONFIG_TYPES = new Set([
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
]);
/** Layers that the registry itself holds; the foreign and non-distributable kinds point elsewhere. */
const LAYER_TYPE =
  /^application\/vnd\.(?:oci\.image\.layer\.v1\.tar(?:\+gzip|\+zstd)?|docker\.image\.rootfs\.diff\.tar(?:\.gzip)?)$/;

/** Largest manifest, in bytes: what registries accept. */
export const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;
const MAX_LAYERS = 512;

/** Name, size and kind of a blob. */
export interface Descriptor {
  mediaType: string;
  /** `sha256:<64 hex>`. */
  digest: string;
  /** Bytes. */
  size: number;
}

/** The manifest of one image. */
export interface ImageManifest {
  mediaType: string;
  config: Descriptor;
  layers: Descriptor[];
}

/** The error of bytes that are not the manifest of one image; its message completes "the image …". */
export class ManifestError extends Error {
  override readonly name = 'ManifestError';
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A JSON object, or ManifestError. */
export function parseObject(bytes: Uint8Array, what: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (isRecord(value)) return value;
  } catch {
    // Said below.
  }
  throw new ManifestError(`has ${what} that is no JSON object`);
}

/** A descriptor whose blob lies beside it, or ManifestError. */
export function parseDescriptor(value: unknown, what: string): Descriptor {
  if (!isRecord(value)) throw new ManifestError(`has no usable ${what}`);
  const { mediaType, digest, size, urls } = value;
  if (urls !== undefined) throw new ManifestError(`has a ${what} that lies elsewhere (urls)`);
  if (!isDigest(digest)) throw new ManifestError(`has a ${what} without a sha256 digest`);
  if (typeof mediaType !== 'string') throw new ManifestError(`has a ${what} without a media type`);
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    throw new ManifestError(`has a ${what} without a usable size`);
  }
  return { mediaType, digest, size };
}

/** Reads the manifest of exactly one image; anything else is a ManifestError. */
export function parseImageManifest(bytes: Uint8Array): ImageManifest {
  const manifest = parseObject(bytes, 'a manifest');
  if (manifest.manifests !== undefined || INDEX_TYPES.has(String(manifest.mediaType))) {
    throw new ManifestError('is a list of several images');
  }
  if (manifest.schemaVersion !== 2) throw new ManifestError('has a manifest of an unknown version');
  const mediaType = manifest.mediaType ?? OCI_MANIFEST;
  if (typeof mediaType !== 'string' || !IMAGE_TYPES.has(mediaType)) {
    throw new ManifestError('has a manifest of an unknown media type');
  }
  const config = parseDescriptor(manifest.config, 'configuration');
  if (!CONFIG_TYPES.has(config.mediaType)) throw new ManifestError('has no configuration of a container image');
  if (!Array.isArray(manifest.layers) || manifest.layers.length > MAX_LAYERS) {
    throw new ManifestError(`has no list of at most ${MAX_LAYERS} layers`);
  }
  const layers = manifest.layers.map((layer, i) => parseDescriptor(layer, `layer ${i + 1}`));
  const odd = layers.findIndex((layer) => !LAYER_TYPE.test(layer.mediaType));
  if (odd >= 0) throw new ManifestError(`has a layer ${odd + 1} of a media type that is no file system`);
  return { mediaType, config, layers };
}

/** Sum of manifest, configuration and layers in bytes; a layer that stands twice counts once. */
export function imageSize(manifest: ImageManifest, manifestBytes: number): number {
  const blobs = new Map([manifest.config, ...manifest.layers].map(({ digest, size }) => [digest, size]));
  return manifestBytes + [...blobs.values()].reduce((sum, size) => sum + size, 0);
}
