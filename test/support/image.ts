/**
 * The operator's image without a container engine: Debian's packages, the pinned Node and the bundle as an OCI layout, and the bases from
 * which Kaniko builds the Dockerfile where no package mirror can be reached. Made once per machine and content; root on Debian or Ubuntu.
 */
import {
  cpSync,
  createReadStream,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseDockerfile } from '../../src/protocol/dockerfile.ts';
import { cached, cacheKey } from '../cluster/cache.ts';
import { execOk } from '../cluster/exec.ts';
import { type Entry, type ImageConfig, layerOf, writeImage } from '../cluster/node/image.ts';
import { debianRoot } from './debian-root.ts';

/** Raised when an image comes out differently from the same parts. */
const RECIPES = '1';
const PACKAGES = ['ca-certificates', 'git', 'libnss-extrausers', 'libstdc++6', 'openssh-client', 'skopeo', 'tini'];
const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const INSTALL_MS = 15 * 60_000;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Gets one line for every step that takes a while. */
type Say = (line: string) => void;

/** A finished image: its layout, the bytes of its blobs, and how long it took to make it just now. */
export interface MadeImage {
  layout: string;
  bytes: number;
  seconds: number;
}

const textOf = (file: string): string => readFileSync(file, 'utf8');

async function layout(
  name: string,
  parts: readonly string[],
  say: Say,
  signal: AbortSignal,
  make: (dir: string, scratch: string) => Promise<void>,
): Promise<string> {
  const entry = `image-${name}-${cacheKey(RECIPES, process.arch, ...parts)}`;
  return await cached(
    {
      name: entry,
      onWait: (seconds) => say(`another run makes the image ${name}; waiting for it since ${seconds} s`),
      make: async (dir) => {
        say(`making the image ${name}, once per machine`);
        const scratch = mkdtempSync(join(tmpdir(), 'skill-operator-image-'));
        try {
          await make(dir, scratch);
        } finally {
          rmSync(scratch, { recursive: true, force: true });
        }
      },
    },
    signal,
  );
}

/** Everything below a folder, as entries of a layer below `prefix`. */
function entriesOf(dir: string, prefix: string): Entry[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map((name): Entry => {
      const file = join(dir, name);
      const info = lstatSync(file);
      const path = `${prefix}/${name}`;
      if (info.isSymbolicLink()) return { path, link: readlinkSync(file) };
      if (info.isDirectory()) return { path: `${path}/`, folder: true };
      return { path, file, mode: info.mode & 0o111 ? 0o755 : 0o644 };
    });
}

/** The folder of the npm on PATH; the pinned Node comes without one. */
function npmFolder(): string {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const program = join(folder, 'npm');
    if (!existsSync(program)) continue;
    const cli = realpathSync(program);
    if (cli.endsWith(join('npm', 'bin', 'npm-cli.js'))) return dirname(dirname(cli));
  }
  throw new Error('The image needs npm: install Node.js with npm, so that npm on PATH leads to npm-cli.js.');
}

/** Node of this machine's node_modules, and npm, where the official Node image has them. */
function nodeEntries(): Entry[] {
  const npm = npmFolder();
  return [
    { path: 'usr/local/bin/node', file: process.execPath },
    { path: 'usr/local/lib/node_modules/npm/', folder: true },
    ...entriesOf(npm, 'usr/local/lib/node_modules/npm'),
    { path: 'usr/local/bin/npm', link: '../lib/node_modules/npm/bin/npm-cli.js' },
    { path: 'usr/local/bin/npx', link: '../lib/node_modules/npm/bin/npx-cli.js' },
  ];
}

/** Debian with the operator's programs and Node: an image that the Dockerfile takes as BASE. */
export async function operatorBase(say: Say, signal: AbortSignal): Promise<string> {
  const debian = await layout('debian', PACKAGES, say, signal, async (dir, scratch) => {
    const tar = join(scratch, 'root.tar');
    await debianRoot(tar, PACKAGES, say, signal);
    await writeImage(dir, createReadStream(tar), { Env: [PATH] }, signal);
  });
  return await layout('node', [debian, process.version], say, signal, async (dir) => {
    await writeImage(dir, layerOf(nodeEntries()), {}, signal, debian);
  });
}

/** PATH without this tree's programs: npm finds the machine's settings (authorities, proxies) beside the machine's own Node. */
const machinePath = (): string =>
  (process.env.PATH ?? '')
    .split(':')
    .filter((dir) => !dir.endsWith('node_modules/.bin'))
    .join(':');

/** That base with all of the lock file's packages in npm's cache: the BUILD_BASE of a build without a network. */
export async function operatorBuildBase(say: Say, signal: AbortSignal): Promise<string> {
  const base = await operatorBase(say, signal);
  const files = ['package.json', 'package-lock.json'];
  const [build] = parseDockerfile(textOf(join(ROOT, 'Dockerfile'))).stages;
  const install = build?.instructions.find(({ keyword }) => keyword === 'RUN')?.args ?? '';
  return await layout(
    'npm-cache',
    [base, install, ...files.map((file) => textOf(join(ROOT, file)))],
    say,
    signal,
    async (dir, scratch) => {
      for (const file of files) cpSync(join(ROOT, file), join(scratch, file));
      const cache = join(scratch, 'cache');
      const env = { PATH: machinePath(), npm_config_cache: cache };
      const script = install.replaceAll('/tools', join(scratch, 'tools'));
      await execOk('sh', ['-ec', script], { signal, cwd: scratch, env, timeoutMs: INSTALL_MS });
      const layer = layerOf([{ path: 'npm-cache/', folder: true }, ...entriesOf(cache, 'npm-cache')]);
      const Env = [PATH, 'npm_config_cache=/npm-cache', 'npm_config_offline=true'];
      await writeImage(dir, layer, { Env }, signal, base);
    },
  );
}

/** How the Dockerfile starts a container. */
function configOf(dockerfile: string): ImageConfig {
  const instructions = parseDockerfile(dockerfile).stages.at(-1)?.instructions ?? [];
  const last = (keyword: string) => instructions.findLast((one) => one.keyword === keyword)?.args ?? '';
  return {
    Entrypoint: JSON.parse(last('ENTRYPOINT')),
    Cmd: JSON.parse(last('CMD')),
    Env: [PATH, ...last('ENV').split(' ')],
    User: last('USER'),
    WorkingDir: last('WORKDIR'),
  };
}

/** The image's own layer: what the Dockerfile's last stage adds to a base that has the programs. */
function appEntries(dist: string): Entry[] {
  const account = 'skill-operator:x:65532:65532::/tmp:/usr/sbin/nologin\n';
  return [
    {
      path: 'etc/passwd',
      text: `root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n${account}`,
    },
    { path: 'etc/nsswitch.conf', text: 'passwd: files extrausers\ngroup: files\nshadow: files\nhosts: files dns\n' },
    { path: 'var/lib/extrausers', link: '/tmp/extrausers' },
    { path: 'app/', folder: true },
    { path: 'app/LICENSE', file: join(ROOT, 'LICENSE'), mode: 0o644 },
    { path: 'app/entrypoint', file: join(ROOT, 'scripts/image/entrypoint.sh') },
    { path: 'app/dist/', folder: true },
    ...entriesOf(dist, 'app/dist'),
  ];
}

/** What the Dockerfile copies, and itself, below /context of a layer. */
export function contextEntries(): Entry[] {
  const files = ['Dockerfile', '.dockerignore', 'LICENSE', 'package.json', 'package-lock.json', 'tsconfig.json'];
  return [
    { path: 'context/', folder: true },
    ...files.map((name): Entry => ({ path: `context/${name}`, file: join(ROOT, name), mode: 0o644 })),
    ...['src', 'scripts'].flatMap((name): Entry[] => [
      { path: `context/${name}/`, folder: true },
      ...entriesOf(join(ROOT, name), `context/${name}`),
    ]),
  ];
}

const sizeOf = (dir: string): number =>
  readdirSync(join(dir, 'blobs', 'sha256')).reduce(
    (sum, name) => sum + lstatSync(join(dir, 'blobs', 'sha256', name)).size,
    0,
  );

/** The operator's image of the present sources; tells its size and how long it took. */
export async function operatorImage(say: Say, signal: AbortSignal): Promise<MadeImage> {
  const began = performance.now();
  const base = await operatorBase(say, signal);
  const scratch = mkdtempSync(join(tmpdir(), 'skill-operator-bundle-'));
  try {
    await execOk(process.execPath, ['scripts/build.ts', '--outdir', scratch], {
      signal,
      cwd: ROOT,
      timeoutMs: INSTALL_MS,
    });
    const dockerfile = textOf(join(ROOT, 'Dockerfile'));
    const content = readdirSync(scratch).map((name) => textOf(join(scratch, name)));
    const parts = [base, dockerfile, textOf(join(ROOT, 'scripts/image/entrypoint.sh')), ...content];
    const made = await layout(
      'skill-operator',
      parts,
      () => undefined,
      signal,
      async (dir) => {
        await writeImage(dir, layerOf(appEntries(scratch)), configOf(dockerfile), signal, base);
      },
    );
    const seconds = (performance.now() - began) / 1000;
    const bytes = sizeOf(made);
    say(`the operator's image has ${(bytes / 2 ** 20).toFixed(0)} MiB and was ready after ${seconds.toFixed(1)} s`);
    return { layout: made, bytes, seconds };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
