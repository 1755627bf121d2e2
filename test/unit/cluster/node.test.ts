import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { extract } from 'tar-stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { kubeconfigText } from '../../cluster/node/accounts.ts';
import { cgroupName, hierarchies } from '../../cluster/node/cgroups.ts';
import { blobPath, type Entry, layerOf, writeImage } from '../../cluster/node/image.ts';
import { isTaken, networkIndices, networkOf } from '../../cluster/node/network.ts';
import { nodeObstacle } from '../../cluster/node/obstacle.ts';
import { connect } from '../../support/k8s-client.ts';

const { signal } = new AbortController();

describe('the network of a node', () => {
  test('has its link, pods and Services in one range of its own', () => {
    expect(networkOf(217)).toMatchInlineSnapshot(`
      {
        "dnsAddress": "10.217.2.10",
        "hostAddress": "10.217.0.1",
        "interface": "skop-node217",
        "link": "10.217.0.0/30",
        "nodeAddress": "10.217.0.2",
        "podRange": "10.217.1.0/24",
        "serviceAddress": "10.217.2.1",
        "serviceRange": "10.217.2.0/24",
      }
    `);
  });

  test('is looked for among all of them, wherever the search begins', () => {
    const every = Array.from({ length: 50 }, (_, i) => 200 + i);
    fc.assert(
      fc.property(fc.nat(1000), (start) => {
        expect(networkIndices(start).toSorted((a, b) => a - b)).toEqual(every);
      }),
    );
  });

  test.each([
    ['default', false],
    ['10.217.0.0/30', true],
    ['10.217.255.255', true],
    ['10.216.255.255', false],
    ['10.218.0.0/16', false],
    ['10.0.0.0/8', true],
    ['10.216.0.0/15', true],
    ['10.128.0.0/9', true],
    ['192.168.0.0/16', false],
    ['0.0.0.0/1', true],
  ])('counts as taken by a route to %s: %s', (destination, taken) => {
    expect(isTaken(217, ['192.0.2.1', destination])).toBe(taken);
  });

  test('gives the interface a name that the kernel takes', () => {
    for (const index of networkIndices(0)) expect(networkOf(index).interface.length).toBeLessThan(16);
  });
});

describe('the cgroups of a run', () => {
  test.each([
    ['version 1', 'tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n', ['cpu']],
    [
      'both',
      'cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n',
      ['cpu,cpuacct', 'unified'],
    ],
    ['version 2', '/dev/vda / ext4 rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n', ['']],
    ['none', '/dev/vda / ext4 rw 0 0\n', []],
  ])('are looked for in every hierarchy of %s', (_version, mounts, expected) => {
    expect(hierarchies(mounts)).toEqual(expected.map((name) => join('/sys/fs/cgroup', name)));
  });

  test('are named after the run', () => {
    expect(cgroupName('/tmp/x/run-1-2-abc')).toBe('skill-operator-run-1-2-abc');
  });
});

describe('a machine that shall run a node', () => {
  test.each([
    [{ kubeconfig: '/k' }, 'KUBECONFIG names a cluster, and its nodes are left alone: unset it'],
    [{ assets: '/a' }, 'KUBEBUILDER_ASSETS holds no node programs: unset it'],
  ])('is refused when given %j', async (given, expected) => {
    const root = process.getuid?.() === 0 && process.platform === 'linux';
    expect(await nodeObstacle(given, signal)).toMatch(root ? expected : /^a node needs (Linux|root)/);
  });
});

describe('a kubeconfig', () => {
  let dir = '';
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'skill-operator-node-'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  test('names server, authority and token', async () => {
    const file = join(dir, 'kubeconfig');
    writeFileSync(file, kubeconfigText({ server: 'https://10.200.0.1:1', caPem: 'PEM', user: 'u', token: 't' }));
    await using api = connect(file);
    expect([api.server, api.caPem]).toEqual(['https://10.200.0.1:1', 'PEM']);
  });
});

describe('an image', () => {
  let dir = '';
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'skill-operator-image-'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  const ENTRIES: readonly Entry[] = [
    { path: 'etc/', folder: true },
    { path: 'tmp/', folder: true, mode: 0o1777 },
    { path: 'etc/text', text: 'hello\n' },
    { path: 'bin/link', link: 'program' },
    { path: 'bin/program', file: '/absent/file' },
  ];
  const plain = ENTRIES.slice(0, 4);
  const json = (layout: string, digest: string) => JSON.parse(readFileSync(blobPath(layout, digest), 'utf8'));

  async function written(name: string, entries: readonly Entry[], base?: string) {
    const layout = join(dir, name);
    await writeImage(layout, layerOf(entries), { Cmd: ['/bin/program'] }, signal, base);
    const index = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'));
    const manifest = json(layout, index.manifests[0].digest);
    return { layout, digest: index.manifests[0].digest, manifest, config: json(layout, manifest.config.digest) };
  }

  async function listing(tar: Buffer): Promise<string[]> {
    const lines: string[] = [];
    for await (const entry of Readable.from([tar]).pipe(extract())) {
      const { type, name, mode = 0, uid, linkname } = entry.header;
      lines.push([type, name, mode.toString(8), uid, linkname].filter((part) => part !== null).join(' '));
      entry.resume();
    }
    return lines;
  }

  test('holds what it was given, owned by root', async () => {
    const { layout, manifest } = await written('a', plain);
    const [layer] = manifest.layers;
    expect(await listing(gunzipSync(readFileSync(blobPath(layout, layer.digest))))).toEqual([
      'directory etc/ 755 0',
      'directory tmp/ 1777 0',
      'file etc/text 644 0',
      'symlink bin/link 777 0 program',
    ]);
  });

  test('names every blob by its digest and size', async () => {
    const { layout, manifest, config } = await written('a', plain);
    for (const name of readdirSync(join(layout, 'blobs', 'sha256'))) {
      const bytes = readFileSync(join(layout, 'blobs', 'sha256', name));
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(name);
    }
    const [layer] = manifest.layers;
    const bytes = readFileSync(blobPath(layout, layer.digest));
    expect(layer.size).toBe(bytes.length);
    expect(config.rootfs.diff_ids).toEqual([`sha256:${createHash('sha256').update(gunzipSync(bytes)).digest('hex')}`]);
    expect(config.config).toEqual({ Cmd: ['/bin/program'] });
  });

  test('comes out the same each time', async () => {
    expect((await written('a', plain)).digest).toBe((await written('b', plain)).digest);
  });

  test('stands on the layers of its base', async () => {
    const base = await written('base', plain);
    const upper = await written('upper', [{ path: 'more', text: 'x' }], base.layout);
    expect(upper.manifest.layers).toHaveLength(2);
    expect(upper.manifest.layers[0]).toEqual(base.manifest.layers[0]);
    expect(upper.config.rootfs.diff_ids[0]).toBe(base.config.rootfs.diff_ids[0]);
  });

  test('fails when a file cannot be read', async () => {
    await expect(written('a', ENTRIES)).rejects.toThrow('ENOENT');
  });
});
