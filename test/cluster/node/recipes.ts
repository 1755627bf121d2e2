import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cached, cacheKey } from '../cache.ts';
import type { Host, Run } from '../component.ts';
import { execOk } from '../exec.ts';
import { ensureGoProgram } from '../go-program.ts';
import { unpackPackage } from './debian.ts';
import { type Entry, type ImageConfig, layerOf, writeImage } from './image.ts';

/** Changes when an image comes out differently from the same parts. */
const RECIPES = '1';
const KANIKO = 'v1.24.0';
const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const ROOT_USER: readonly Entry[] = [
  { path: 'etc/', folder: true },
  { path: 'etc/passwd', text: 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' },
  { path: 'etc/group', text: 'root:x:0:\nnogroup:x:65534:\n' },
  { path: 'root/', folder: true, mode: 0o700 },
  { path: 'tmp/', folder: true, mode: 0o1777 },
];

/** How an image is made. */
interface Recipe {
  name: string;
  /** What decides how it comes out, beside this file's version of the recipes. */
  key: readonly string[];
  config: ImageConfig;
  entries: (scratch: string, signal: AbortSignal) => Promise<readonly Entry[]>;
  /** Layout of the image that it stands on; default: none. */
  base?: string;
}

/** Path of an image's OCI layout; made once per machine. */
export async function ensureImage(recipe: Recipe, host: Pick<Host, 'say'>, signal: AbortSignal): Promise<string> {
  const { name, key, config, entries, base } = recipe;
  return await cached(
    {
      name: `image-${name}-${cacheKey(RECIPES, process.arch, JSON.stringify(config), ...key)}`,
      onWait: (seconds) => host.say(`another run makes the image ${name}; waiting for it since ${seconds} s`),
      make: async (dir, within) => {
        host.say(`making the image ${name}, once per machine`);
        const scratch = mkdtempSync(`${dir}-`);
        try {
          await writeImage(dir, layerOf(await entries(scratch, within)), config, within, base);
        } finally {
          rmSync(scratch, { recursive: true, force: true });
        }
      },
    },
    signal,
  );
}

/** The first process of every pod. */
export const pauseImage = async (run: Run, signal: AbortSignal): Promise<string> =>
  await ensureImage(
    {
      name: 'pause',
      key: [run.program('pause')],
      config: { Entrypoint: ['/pause'] },
      entries: async () => [{ path: 'pause', file: run.program('pause') }],
    },
    run.host,
    signal,
  );

/** A shell and the usual commands, in one static program. */
export const busyboxImage = async (host: Pick<Host, 'say'>, signal: AbortSignal): Promise<string> =>
  await ensureImage(
    {
      name: 'busybox',
      key: [],
      config: { Cmd: ['/bin/sh'], Env: [PATH] },
      entries: async (scratch, within) => {
        const file = join(await unpackPackage('busybox-static', scratch, within), 'bin', 'busybox');
        const commands = (await execOk(file, ['--list'], { signal: within })).split('\n').filter((line) => line !== '');
        const links = commands
          .filter((command) => command !== 'busybox')
          .map((command) => ({ path: `bin/${command}`, link: 'busybox' }));
        return [{ path: 'bin/', folder: true }, { path: 'bin/busybox', file }, ...links, ...ROOT_USER];
      },
    },
    host,
    signal,
  );

/** Kaniko's executor as its own image lays it out. */
export async function kanikoImage(run: Run, signal: AbortSignal): Promise<string> {
  const executor = await ensureGoProgram(
    {
      name: 'kaniko',
      folder: 'kaniko',
      files: ['go.mod', 'go.sum'],
      package: 'github.com/GoogleContainerTools/kaniko/cmd/executor',
      flags: [
        '-buildvcs=false',
        '-ldflags',
        `-s -w -X github.com/GoogleContainerTools/kaniko/pkg/version.version=${KANIKO}`,
      ],
      what: 'the Kaniko executor',
      takes: 'about 5 minutes',
      waysAround: 'Install Go 1.26 or newer.',
    },
    run.host,
    signal,
  );
  const entries: readonly Entry[] = [
    { path: 'kaniko/', folder: true, mode: 0o777 },
    { path: 'kaniko/executor', file: executor },
    { path: 'workspace/', folder: true },
    { path: 'etc/', folder: true },
    { path: 'etc/nsswitch.conf', text: 'hosts: files dns\n' },
  ];
  return await ensureImage(
    {
      name: 'kaniko',
      key: [executor],
      config: {
        Entrypoint: ['/kaniko/executor'],
        Env: ['HOME=/root', 'USER=root', 'PATH=/usr/local/bin:/kaniko', 'SSL_CERT_DIR=/kaniko/ssl/certs'],
        WorkingDir: '/workspace',
      },
      entries: async () => entries,
    },
    run.host,
    signal,
  );
}
