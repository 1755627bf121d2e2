import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { cached, cacheKey } from '../../cluster/cache.ts';
import { exec, execOk } from '../../cluster/exec.ts';
import { installPackages } from '../../cluster/packages.ts';
import { commandOf, IMAGES } from '../../support/platform-images.ts';

const INSTALL_MS = 10 * 60_000;
const never = new AbortController().signal;
const say = (line: string) => process.stderr.write(`[platform images] ${line}\n`);
const text = (...path: string[]) => readFileSync(join(IMAGES, ...path), 'utf8');

/** A folder that holds what the image would hold at its root; made once per machine and content. */
async function rootOf(name: string, command: readonly string[], parts: string[], make: (dir: string) => Promise<void>) {
  const key = cacheKey(process.platform, process.arch, command.join(' '), ...parts);
  const onWait = (seconds: number) => say(`another run makes the root of ${name}; waiting since ${seconds} s`);
  return await cached({ name: `runtime-${name}-${key}`, onWait, make }, never);
}

describe('the Python runtime', () => {
  let root: string;

  beforeAll(async () => {
    const [program, ...args] = commandOf('e2b-python', 'pip install');
    expect(program).toBe('python3');
    if ((await exec('python3', ['-c', 'import venv, ensurepip'], { signal: never })).code !== 0)
      await installPackages(['python3-venv'], say, never);
    const parts = [text('python', 'requirements.txt'), text('python', 'constraints.txt')];
    root = await rootOf('python', [program, ...args], parts, async (dir) => {
      say('installing the packages of the Python runtime, once per machine');
      await execOk('python3', ['-m', 'venv', dir], { signal: never, timeoutMs: INSTALL_MS });
      const local = args.map((arg) => arg.replace('/usr/share/skill-runtime', join(IMAGES, 'python')));
      await execOk(join(dir, 'bin', 'python3'), local, { signal: never, timeoutMs: INSTALL_MS });
    });
  }, 2 * INSTALL_MS);

  it('imports every promised package, works with it, and has the pinned versions', async () => {
    const env = { MPLBACKEND: 'Agg' };
    const out = await execOk(join(root, 'bin', 'python3'), [join(IMAGES, 'checks', 'packages.py')], {
      signal: never,
      env,
    });
    const pinned = text('python', 'requirements.txt').matchAll(/^([\w-]+)==(.+)$/gm);
    expect(JSON.parse(out)).toMatchObject(
      Object.fromEntries(Array.from(pinned, ([, name, version]) => [name, version])),
    );
  });
});

describe('the Node runtime', () => {
  let root: string;
  const env = { PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) };
  const inSkill = () => ({ signal: never, cwd: join(root, 'skill'), env });

  beforeAll(async () => {
    const [program, ...args] = commandOf('e2b-node', 'npm ci');
    const parts = [text('node', 'package-lock.json'), text('checks', 'packages.mjs'), text('checks', 'script.ts')];
    root = await rootOf('node', [program, ...args], parts, async (dir) => {
      say('installing the packages of the Node runtime, once per machine');
      for (const name of ['package.json', 'package-lock.json']) cpSync(join(IMAGES, 'node', name), join(dir, name));
      const local = args.map((arg) => (arg === '/' ? dir : arg));
      await execOk(program, local, { signal: never, env, cwd: dir, timeoutMs: INSTALL_MS });
      mkdirSync(join(dir, 'skill', 'scripts'), { recursive: true });
      for (const name of ['packages.mjs', 'script.ts'])
        cpSync(join(IMAGES, 'checks', name), join(dir, 'skill', 'scripts', name));
    });
  }, INSTALL_MS);

  it('lets a script below /skill import every promised package, as an ES module and by require', async () => {
    const out = await execOk('node', ['scripts/packages.mjs'], inSkill());
    expect(JSON.parse(out)).toEqual({ node: process.versions.node, packages: ['axios', 'dayjs', 'tsx', 'zod'] });
  });

  it.each([
    ['npx tsx', 'npx', ['--offline', 'tsx']],
    ['tsx', '../node_modules/.bin/tsx', []],
  ] as const)('runs TypeScript with %s', async (_title, program, args) => {
    const out = await execOk(program, [...args, 'scripts/script.ts', 'a b'], inSkill());
    expect(JSON.parse(out)).toEqual({ ok: true, args: ['a b'] });
  });

  it('adds nothing to the folder of the skill', () => {
    expect(existsSync(join(root, 'skill', 'node_modules'))).toBe(false);
  });
});
