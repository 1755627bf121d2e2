import { createHash, type Hash } from 'node:crypto';
import {
  createReadStream,
  createWriteStream,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { type Pack, pack } from 'tar-stream';

/** One thing in a layer; `mode` is 0755 for folders and programs, 0644 for text, unless told. */
export type Entry = { path: string; mode?: number } & (
  | { folder: true }
  | { text: string }
  | { file: string }
  | { link: string }
);

/** How a container of an image is started; the members of the OCI image configuration with the same names. */
export interface ImageConfig {
  Entrypoint?: readonly string[];
  Cmd?: readonly string[];
  Env?: readonly string[];
  User?: string;
  WorkingDir?: string;
}

const ARCHITECTURES: Partial<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** Path of a blob in an OCI layout. */
export const blobPath = (layout: string, digest: string): string => join(layout, 'blobs', ...digest.split(':'));

function counting(hash: Hash, onSize: (bytes: number) => void): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      onSize(bytes);
      done(null, chunk);
    },
  });
}

function add(tar: Pack, header: Parameters<Pack['entry']>[0], body: Buffer | string = ''): void {
  tar.entry({ ...header, mtime: new Date(0) }, body);
}

async function addFile(tar: Pack, name: string, file: string, mode: number): Promise<void> {
  const entry = tar.entry({ name, mode, size: statSync(file).size, mtime: new Date(0) });
  await pipeline(createReadStream(file), entry);
}

async function fill(tar: Pack, entries: readonly Entry[]): Promise<void> {
  for (const entry of entries) {
    const name = entry.path;
    if ('folder' in entry) add(tar, { name, type: 'directory', mode: entry.mode ?? 0o755 });
    else if ('link' in entry) add(tar, { name, type: 'symlink', linkname: entry.link, mode: 0o777 });
    else if ('text' in entry) add(tar, { name, mode: entry.mode ?? 0o644 }, entry.text);
    else await addFile(tar, name, entry.file, entry.mode ?? 0o755);
  }
  tar.finalize();
}

/** A tar with these entries, all of them owned by root. */
export function layerOf(entries: readonly Entry[]): Readable {
  const tar = pack();
  fill(tar, entries).catch((error: Error) => tar.destroy(error));
  return Readable.from(tar);
}

/** Content of an OCI layout by its type, digest and size. */
interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

function writeBlob(layout: string, mediaType: string, content: object): Descriptor {
  const text = JSON.stringify(content);
  const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`;
  writeFileSync(blobPath(layout, digest), text);
  return { mediaType, digest, size: Buffer.byteLength(text) };
}

async function writeLayer(
  layout: string,
  tar: Readable,
  signal: AbortSignal,
): Promise<Descriptor & { diffId: string }> {
  const plain = createHash('sha256');
  const packed = createHash('sha256');
  let size = 0;
  const temporary = join(layout, 'layer');
  const outer = counting(packed, (bytes) => {
    size = bytes;
  });
  const inner = counting(plain, () => undefined);
  await pipeline(tar, inner, createGzip(), outer, createWriteStream(temporary), { signal });
  const digest = `sha256:${packed.digest('hex')}`;
  renameSync(temporary, blobPath(layout, digest));
  const mediaType = 'application/vnd.oci.image.layer.v1.tar+gzip';
  return { mediaType, digest, size, diffId: `sha256:${plain.digest('hex')}` };
}

/** What an image adds its layer to. */
interface Below {
  layers: Descriptor[];
  diffIds: string[];
  config: ImageConfig;
}

/** Takes the layers of another layout over; both must lie on one file system. */
function takeOver(layout: string, base: string): Below {
  const read = (digest: string) => JSON.parse(readFileSync(blobPath(base, digest), 'utf8'));
  const index = JSON.parse(readFileSync(join(base, 'index.json'), 'utf8')) as { manifests: [Descriptor] };
  const { layers, config } = read(index.manifests[0].digest) as { layers: Descriptor[]; config: Descriptor };
  for (const { digest } of layers) linkSync(blobPath(base, digest), blobPath(layout, digest));
  const image = read(config.digest) as { config: ImageConfig; rootfs: { diff_ids: string[] } };
  return { layers, diffIds: image.rootfs.diff_ids, config: image.config };
}

/** Writes an image as an OCI layout into a folder: of one layer, or of one on top of the image in the layout `base`. */
export async function writeImage(
  layout: string,
  tar: Readable,
  config: ImageConfig,
  signal: AbortSignal,
  base?: string,
): Promise<void> {
  mkdirSync(join(layout, 'blobs', 'sha256'), { recursive: true });
  const below = base === undefined ? { layers: [], diffIds: [], config: {} } : takeOver(layout, base);
  const { diffId, ...layer } = await writeLayer(layout, tar, signal);
  const diffIds = [...below.diffIds, diffId];
  const platform = { architecture: ARCHITECTURES[process.arch] ?? process.arch, os: 'linux' };
  const configuration = writeBlob(layout, 'application/vnd.oci.image.config.v1+json', {
    created: '1970-01-01T00:00:00Z',
    ...platform,
    config: { ...below.config, ...config },
    rootfs: { type: 'layers', diff_ids: diffIds },
    history: diffIds.map(() => ({ created: '1970-01-01T00:00:00Z', created_by: 'skill-operator tests' })),
  });
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = writeBlob(layout, mediaType, {
    schemaVersion: 2,
    mediaType,
    config: configuration,
    layers: [...below.layers, layer],
  });
  writeFileSync(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  writeFileSync(
    join(layout, 'index.json'),
    JSON.stringify({ schemaVersion: 2, manifests: [{ ...manifest, platform }] }),
  );
}
