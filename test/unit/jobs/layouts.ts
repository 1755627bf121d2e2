import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { writeTar } from '../../../src/store/tar.ts';

export const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

/** The parts of a layout before they are written. */
export interface LayoutParts {
  blobs: Map<string, Buffer>;
  index: Record<string, unknown>;
  marker: unknown;
}

export const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

const add = (blobs: Map<string, Buffer>, bytes: Buffer, mediaType: string) => {
  blobs.set(digestOf(bytes), bytes);
  return { mediaType, digest: digestOf(bytes), size: bytes.length };
};

/** A layout with one image of one layer; `change` may alter the manifest before it is hashed. */
export function layoutParts(
  change: (manifest: Record<string, unknown>) => void = () => {},
  text = 'hello',
): LayoutParts {
  const blobs = new Map<string, Buffer>();
  const tar = Buffer.from(writeTar([{ path: 'hello.txt', mode: '0644', content: Buffer.from(text) }]).tar);
  const layer = add(blobs, gzipSync(tar), 'application/vnd.oci.image.layer.v1.tar+gzip');
  const config = {
    architecture: 'amd64',
    os: 'linux',
    rootfs: { type: 'layers', diff_ids: [digestOf(tar)] },
    config: {},
  };
  const configBlob = add(blobs, Buffer.from(JSON.stringify(config)), 'application/vnd.oci.image.config.v1+json');
  const manifest: Record<string, unknown> = {
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    config: configBlob,
    layers: [layer],
  };
  change(manifest);
  const image = add(blobs, Buffer.from(JSON.stringify(manifest)), OCI_MANIFEST);
  return { blobs, index: { schemaVersion: 2, manifests: [image] }, marker: { imageLayoutVersion: '1.0.0' } };
}

export const blobFile = (directory: string, digest: string): string => join(directory, 'blobs', ...digest.split(':'));

/** Writes the parts below a directory. */
export function writeLayout(directory: string, { blobs, index, marker }: LayoutParts): void {
  mkdirSync(join(directory, 'blobs', 'sha256'), { recursive: true });
  for (const [digest, bytes] of blobs) writeFileSync(blobFile(directory, digest), bytes);
  writeFileSync(join(directory, 'index.json'), JSON.stringify(index));
  writeFileSync(join(directory, 'oci-layout'), JSON.stringify(marker));
}

const MAKE_PIPE = 'mkfifo';

/** Creates a named pipe: whoever opens it plainly waits for ever. */
export const makePipe = (path: string): Buffer => execFileSync(MAKE_PIPE, ['--', path]);
