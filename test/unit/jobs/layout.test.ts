import {
  appendFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EXIT } from '../../../src/build/exits.ts';
import { copyLayout } from '../../../src/jobs/layout.ts';
import { blobFile, digestOf, type LayoutParts, layoutParts, makePipe, OCI_MANIFEST, writeLayout } from './layouts.ts';

const signal = new AbortController().signal;
const LIMIT = 1_000_000;
let root: string;
let source: string;
let target: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'layout-'));
  [source, target] = [join(root, 'source'), join(root, 'target')];
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const copy = (maxBytes = LIMIT) => copyLayout(source, target, maxBytes, signal);
const imageOf = ({ index }: LayoutParts) =>
  (index.manifests as [{ digest: string; size: number; mediaType: string }])[0];
const manifestOf = (parts: LayoutParts) =>
  JSON.parse(String(parts.blobs.get(imageOf(parts).digest))) as {
    config: { digest: string };
    layers: [{ digest: string }];
  };
const layerOf = (parts: LayoutParts) => manifestOf(parts).layers[0].digest;
const layersOf = (manifest: Record<string, unknown>) =>
  manifest.layers as [Record<string, unknown>, ...Record<string, unknown>[]];

describe('copyLayout', () => {
  test('takes the image over, bit for bit, and says its digest and size', async () => {
    const parts = layoutParts();
    writeLayout(source, parts);
    const sum = [...parts.blobs.values()].reduce((total, blob) => total + blob.length, 0);
    expect(await copy()).toEqual({ digest: imageOf(parts).digest, size: sum });
    for (const [digest, bytes] of parts.blobs) expect(readFileSync(blobFile(target, digest))).toEqual(bytes);
  });

  test('leaves behind what the image does not name', async () => {
    const parts = layoutParts();
    parts.index.annotations = { evil: 'x' };
    parts.blobs.set(digestOf(Buffer.from('stray')), Buffer.from('stray'));
    writeLayout(source, parts);
    writeFileSync(join(source, 'stray'), 'x');
    await copy();
    expect(readdirSync(join(target, 'blobs', 'sha256'))).toHaveLength(3);
    expect(JSON.parse(readFileSync(join(target, 'index.json'), 'utf8'))).toEqual({
      schemaVersion: 2,
      manifests: [{ mediaType: OCI_MANIFEST, digest: imageOf(parts).digest, size: imageOf(parts).size }],
    });
  });

  test('takes a layer that stands twice', async () => {
    writeLayout(
      source,
      layoutParts((manifest) => layersOf(manifest).push(layersOf(manifest)[0])),
    );
    await expect(copy()).resolves.toBeDefined();
  });

  test('obeys its limit before it copies a layer', async () => {
    const parts = layoutParts((manifest) => {
      layersOf(manifest)[0].size = LIMIT;
    });
    writeLayout(source, parts);
    await expect(copy()).rejects.toMatchObject({ exitCode: EXIT.ImageTooLarge });
    expect(readdirSync(join(target, 'blobs', 'sha256'))).toEqual([imageOf(parts).digest.slice(7)]);
  });

  /** Each writes a layout that is not to be believed. */
  const HOSTILE: [name: string, prepare: (parts: LayoutParts) => void][] = [
    ['nothing at all', () => mkdirSync(source)],
    ['no directory', () => writeFileSync(source, 'x')],
    [
      'a link in place of the layout',
      (parts) => {
        writeLayout(join(root, 'other'), parts);
        symlinkSync('other', source);
      },
    ],
    [
      'a link in place of the blobs',
      (parts) => {
        writeLayout(source, parts);
        renameSync(join(source, 'blobs'), join(root, 'blobs'));
        symlinkSync('../blobs', join(source, 'blobs'));
      },
    ],
    [
      'a link in place of the sha256 directory',
      (parts) => {
        writeLayout(source, parts);
        renameSync(join(source, 'blobs', 'sha256'), join(root, 'sha256'));
        symlinkSync('../../sha256', join(source, 'blobs', 'sha256'));
      },
    ],
    [
      'a layer that is a link, even to the right bytes',
      (parts) => {
        writeLayout(source, parts);
        const file = blobFile(source, layerOf(parts));
        renameSync(file, join(root, 'layer'));
        symlinkSync(join(root, 'layer'), file);
      },
    ],
    [
      'a layer that is a pipe',
      (parts) => {
        writeLayout(source, parts);
        rmSync(blobFile(source, layerOf(parts)));
        makePipe(blobFile(source, layerOf(parts)));
      },
    ],
    [
      'a layer that is a directory',
      (parts) => {
        writeLayout(source, parts);
        rmSync(blobFile(source, layerOf(parts)));
        mkdirSync(blobFile(source, layerOf(parts)));
      },
    ],
    [
      'an index that is a pipe',
      (parts) => {
        writeLayout(source, parts);
        rmSync(join(source, 'index.json'));
        makePipe(join(source, 'index.json'));
      },
    ],
    [
      'a layer that is not there',
      (parts) => {
        writeLayout(source, parts);
        rmSync(blobFile(source, layerOf(parts)));
      },
    ],
    [
      'a layer of other bytes',
      (parts) => {
        writeLayout(source, parts);
        const bytes = readFileSync(blobFile(source, layerOf(parts)));
        bytes[0] = (bytes[0] as number) ^ 1;
        writeFileSync(blobFile(source, layerOf(parts)), bytes);
      },
    ],
    [
      'a layer that is longer than it says',
      (parts) => {
        writeLayout(source, parts);
        appendFileSync(blobFile(source, layerOf(parts)), 'x');
      },
    ],
    [
      'a layer that is shorter than it says',
      (parts) => {
        writeLayout(source, parts);
        truncateSync(blobFile(source, layerOf(parts)), 1);
      },
    ],
    [
      'a configuration of other bytes',
      (parts) => {
        writeLayout(source, parts);
        const file = blobFile(source, manifestOf(parts).config.digest);
        writeFileSync(file, readFileSync(file, 'utf8').replace('amd64', 'arm64'));
      },
    ],
    [
      'a manifest of other bytes',
      (parts) => {
        writeLayout(source, parts);
        const file = blobFile(source, imageOf(parts).digest);
        writeFileSync(file, readFileSync(file, 'utf8').replace('"schemaVersion":2', '"schemaVersion":1'));
      },
    ],
    [
      'two images',
      (parts) => {
        (parts.index.manifests as unknown[]).push(imageOf(parts));
        writeLayout(source, parts);
      },
    ],
    [
      'no image',
      (parts) => {
        parts.index.manifests = [];
        writeLayout(source, parts);
      },
    ],
    [
      'an index within the index',
      (parts) => {
        const nested = Buffer.from(JSON.stringify(parts.index));
        parts.blobs.set(digestOf(nested), nested);
        const mediaType = 'application/vnd.oci.image.index.v1+json';
        parts.index = { schemaVersion: 2, manifests: [{ mediaType, digest: digestOf(nested), size: nested.length }] };
        writeLayout(source, parts);
      },
    ],
    [
      'an index within the index that calls itself an image',
      (parts) => {
        const nested = Buffer.from(JSON.stringify(parts.index));
        parts.blobs.set(digestOf(nested), nested);
        parts.index = {
          schemaVersion: 2,
          manifests: [{ ...imageOf(parts), digest: digestOf(nested), size: nested.length }],
        };
        writeLayout(source, parts);
      },
    ],
    [
      'another media type in the index than in the manifest',
      (parts) => {
        imageOf(parts).mediaType = 'application/vnd.docker.distribution.manifest.v2+json';
        writeLayout(source, parts);
      },
    ],
    [
      'a digest that is a path',
      (parts) => {
        writeFileSync(join(root, 'secret'), 'x');
        imageOf(parts).digest = 'sha256:../../../secret';
        writeLayout(source, parts);
      },
    ],
    [
      'a foreign layer',
      () =>
        writeLayout(
          source,
          layoutParts((m) => {
            layersOf(m)[0].urls = ['https://evil.example.com/layer'];
          }),
        ),
    ],
    [
      'a layer of the right bytes that claims to be smaller, to slip below the limit',
      () =>
        writeLayout(
          source,
          layoutParts((m) => {
            layersOf(m)[0].size = 1;
          }),
        ),
    ],
    [
      'a marker that is a directory',
      (parts) => {
        writeLayout(source, parts);
        rmSync(join(source, 'oci-layout'));
        mkdirSync(join(source, 'oci-layout'));
      },
    ],
    [
      'a layer without a size',
      () =>
        writeLayout(
          source,
          layoutParts((m) => {
            delete layersOf(m)[0].size;
          }),
        ),
    ],
    [
      'a manifest of five megabytes',
      () =>
        writeLayout(
          source,
          layoutParts((m) => {
            m.annotations = { x: 'y'.repeat(5 * 1024 * 1024) };
          }),
        ),
    ],
    [
      'an index of two megabytes',
      (parts) => {
        parts.index.annotations = { x: 'y'.repeat(2 * 1024 * 1024) };
        writeLayout(source, parts);
      },
    ],
    [
      'a layout of another version',
      (parts) => {
        parts.marker = { imageLayoutVersion: '2.0.0' };
        writeLayout(source, parts);
      },
    ],
    [
      'an index that is no JSON',
      (parts) => {
        writeLayout(source, parts);
        writeFileSync(join(source, 'index.json'), '{');
      },
    ],
  ];

  test.each(HOSTILE)('refuses %s', async (_name, prepare) => {
    prepare(layoutParts());
    await expect(copy()).rejects.toMatchObject({ name: 'JobError', exitCode: EXIT.LayoutRefused });
  });

  test('does not read a file that only the root of the build could name', async () => {
    const secret = join(root, 'credential');
    writeFileSync(secret, 'token');
    const parts = layoutParts();
    writeLayout(source, parts);
    const file = blobFile(source, layerOf(parts));
    rmSync(file);
    linkSync(secret, file);
    await expect(copy()).rejects.toMatchObject({ exitCode: EXIT.LayoutRefused });
  });

  test('stops when it is told to', async () => {
    writeLayout(source, layoutParts());
    const stop = new Error('stop');
    await expect(copyLayout(source, target, LIMIT, AbortSignal.abort(stop))).rejects.toBe(stop);
  });
});
