/** Takes over what a build left behind. Its author ran as root beside these files, so nothing about them is believed. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EXIT } from '../build/exits.ts';
import {
  type Descriptor,
  IMAGE_TYPES,
  type ImageManifest,
  imageSize,
  MAX_MANIFEST_BYTES,
  ManifestError,
  parseDescriptor,
  parseImageManifest,
  parseObject,
} from '../build/ocimanifest.ts';
import type { BuildResult } from '../build/result.ts';
import { codeOf, JobError } from './failure.ts';

const MAX_INDEX_BYTES = 1024 * 1024;
const MAX_MARKER_BYTES = 4096;
const CHUNK = 1024 * 1024;
const VERSION = '1.0.0';

const refused = (what: string): JobError => new JobError(EXIT.LayoutRefused, `the image ${what}`);

async function checkDirectory(path: string, name: string): Promise<void> {
  const stat = await lstat(path).catch(() => undefined);
  if (!stat?.isDirectory()) throw refused(`has no directory ${name}`);
}

/** Opens a regular file; a link is not followed and a pipe does not block. Its directory was checked, and whoever could change it is gone. */
async function openFile(path: string, name: string): Promise<{ file: FileHandle; size: number }> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  let file: FileHandle;
  try {
    file = await open(path, flags);
  } catch (error) {
    throw refused(`has no readable file ${name} (${codeOf(error)})`);
  }
  const stat = await file.stat();
  if (stat.isFile()) return { file, size: stat.size };
  await file.close();
  throw refused(`has something else than a file at ${name}`);
}

async function readSmall(path: string, name: string, limit: number): Promise<Buffer> {
  const { file, size } = await openFile(path, name);
  try {
    if (size > limit) throw refused(`has a file ${name} of ${size} bytes`);
    const bytes = Buffer.alloc(size);
    const { bytesRead } = await file.read(bytes, 0, size, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

const hexOf = ({ digest }: Descriptor): string => digest.slice('sha256:'.length);

/** Copies one blob and proves size and checksum on the way. */
async function copyBlob(from: string, to: string, blob: Descriptor, signal: AbortSignal): Promise<void> {
  const { file, size } = await openFile(join(from, hexOf(blob)), blob.digest);
  const hash = createHash('sha256');
  try {
    if (size !== blob.size) throw refused(`has a blob ${blob.digest} of ${size} bytes, its manifest says ${blob.size}`);
    await using target = await open(join(to, hexOf(blob)), 'wx', 0o600);
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK, Math.max(size, 1)));
    for (let at = 0; at < size; ) {
      signal.throwIfAborted();
      const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, size - at), at);
      if (bytesRead === 0) throw refused(`has a blob ${blob.digest} that ends early`);
      const chunk = buffer.subarray(0, bytesRead);
      hash.update(chunk);
      await target.writeFile(chunk);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
  if (hash.digest('hex') !== hexOf(blob)) throw refused(`has a blob whose bytes are not those of ${blob.digest}`);
}

/** The one image that the layout's index names. */
async function imageOf(source: string): Promise<Descriptor> {
  const marker = parseObject(
    await readSmall(join(source, 'oci-layout'), 'oci-layout', MAX_MARKER_BYTES),
    'an oci-layout',
  );
  if (marker.imageLayoutVersion !== VERSION) throw refused('is in a layout of an unknown version');
  const index = parseObject(
    await readSmall(join(source, 'index.json'), 'index.json', MAX_INDEX_BYTES),
    'an index.json',
  );
  const { manifests } = index;
  if (!Array.isArray(manifests) || manifests.length !== 1) throw refused('is not the only one in its layout');
  const image = parseDescriptor(manifests[0], 'manifest');
  if (!IMAGE_TYPES.has(image.mediaType)) throw refused('is a list of several images, or of an unknown media type');
  if (image.size > MAX_MANIFEST_BYTES) throw refused(`has a manifest of ${image.size} bytes`);
  return image;
}

function checkSize(manifest: ImageManifest, image: Descriptor, maxBytes: number): number {
  const size = imageSize(manifest, image.size);
  if (size <= maxBytes) return size;
  throw new JobError(EXIT.ImageTooLarge, `the image has ${size} bytes, the limit is ${maxBytes}`);
}

async function takeOver(source: string, target: string, maxBytes: number, signal: AbortSignal): Promise<BuildResult> {
  await checkDirectory(source, 'of its own');
  await checkDirectory(join(source, 'blobs'), 'blobs');
  await checkDirectory(join(source, 'blobs', 'sha256'), 'blobs/sha256');
  const image = await imageOf(source);
  const [from, to] = [join(source, 'blobs', 'sha256'), join(target, 'blobs', 'sha256')];
  await mkdir(to, { recursive: true });
  await copyBlob(from, to, image, signal);
  // From here on the copy is read, which nobody else can write.
  const manifest = parseImageManifest(await readSmall(join(to, hexOf(image)), 'manifest', MAX_MANIFEST_BYTES));
  if (manifest.mediaType !== image.mediaType) throw refused('has a manifest of another media type than its index says');
  const size = checkSize(manifest, image, maxBytes);
  const blobs = new Map([manifest.config, ...manifest.layers].map((blob) => [blob.digest, blob]));
  blobs.delete(image.digest);
  for (const blob of blobs.values()) await copyBlob(from, to, blob, signal);
  const { digest, mediaType } = image;
  await writeFile(join(target, 'oci-layout'), JSON.stringify({ imageLayoutVersion: VERSION }));
  const index = { schemaVersion: 2, manifests: [{ mediaType, digest, size: image.size }] };
  await writeFile(join(target, 'index.json'), JSON.stringify(index));
  return { digest, size };
}

/**
 * Copies the one image of an OCI layout to a new directory, with a marker and an index of our own.
 * Only regular files are read; manifest, configuration and layers must have the size and sha256 that name them. JobError `LayoutRefused`
 * for anything else, `ImageTooLarge` before a layer above `maxBytes` in all is copied. Answers with digest and total size.
 */
export async function copyLayout(
  source: string,
  target: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<BuildResult> {
  try {
    return await takeOver(source, target, maxBytes, signal);
  } catch (error) {
    if (error instanceof ManifestError) throw refused(error.message);
    throw error;
  }
}
