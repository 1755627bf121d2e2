import { describe, expect, test } from 'vitest';
import { imageSize, ManifestError, parseImageManifest } from '../../../src/build/ocimanifest.ts';
import { hex } from './samples.ts';

const OCI = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = { mediaType: 'application/vnd.oci.image.config.v1+json', digest: `sha256:${hex('1')}`, size: 10 };
const LAYER = { mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest: `sha256:${hex('2')}`, size: 100 };
const IMAGE = { schemaVersion: 2, mediaType: OCI, config: CONFIG, layers: [LAYER] };
const parse = (value: unknown) =>
  parseImageManifest(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));

describe('parseImageManifest', () => {
  test.each<[string, unknown]>([
    ['OCI', IMAGE],
    ['OCI without its own media type', { ...IMAGE, mediaType: undefined }],
    [
      'Docker schema 2',
      {
        schemaVersion: 2,
        mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
        config: { ...CONFIG, mediaType: 'application/vnd.docker.container.image.v1+json' },
        layers: [{ ...LAYER, mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip' }],
      },
    ],
    ['an image without layers', { ...IMAGE, layers: [] }],
  ])('reads %s', (_name, value) => {
    expect(parse(value).config.digest).toBe(CONFIG.digest);
  });

  test.each<[string, unknown]>([
    ['no JSON', '{'],
    ['JSON that is no object', '[]'],
    ['an index', { schemaVersion: 2, manifests: [] }],
    ['an index that calls itself an image', { ...IMAGE, manifests: [] }],
    ['a media type of an index', { ...IMAGE, mediaType: 'application/vnd.oci.image.index.v1+json' }],
    ['schema 1', { ...IMAGE, schemaVersion: 1 }],
    ['an unknown media type', { ...IMAGE, mediaType: 'text/plain' }],
    ['no configuration', { ...IMAGE, config: undefined }],
    [
      'a configuration that is no image',
      { ...IMAGE, config: { ...CONFIG, mediaType: 'application/vnd.oci.empty.v1+json' } },
    ],
    ['layers that are no list', { ...IMAGE, layers: {} }],
    ['endless layers', { ...IMAGE, layers: Array(513).fill(LAYER) }],
    [
      'a foreign layer',
      { ...IMAGE, layers: [{ ...LAYER, mediaType: 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip' }] },
    ],
    ['a layer elsewhere', { ...IMAGE, layers: [{ ...LAYER, urls: ['https://evil'] }] }],
    ['an empty list of places', { ...IMAGE, layers: [{ ...LAYER, urls: [] }] }],
    ['another hash', { ...IMAGE, layers: [{ ...LAYER, digest: `sha512:${hex('2')}${hex('2')}` }] }],
    ['a digest with a path', { ...IMAGE, layers: [{ ...LAYER, digest: 'sha256:../../../etc/passwd' }] }],
    ['a size below zero', { ...IMAGE, layers: [{ ...LAYER, size: -1 }] }],
    ['a size above all numbers', { ...IMAGE, layers: [{ ...LAYER, size: 1e300 }] }],
    ['a layer that is null', { ...IMAGE, layers: [null] }],
    ['bytes that are no text', Buffer.from([0xff, 0xfe]).toString('latin1')],
  ])('refuses %s', (_name, value) => {
    expect(() => parse(value)).toThrow(ManifestError);
  });
});

describe('imageSize', () => {
  test('counts a layer that stands twice once', () => {
    expect(imageSize(parse({ ...IMAGE, layers: [LAYER, LAYER] }), 1000)).toBe(1110);
  });
});
