import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { runSkillctl } from '../../../src/cli/program.ts';

const run = promisify(execFile);
const TIMEOUT_MS = 60_000;
/** For a command that waits for an operator on a busy machine; the test itself has the tighter bound. */
const WAITING_MS = 280_000;
/** Variables by which Node decides about colours; a child gets them from the test alone. */
const COLOR_VARIABLES = new Set(['FORCE_COLOR', 'NO_COLOR', 'NODE_DISABLE_COLORS', 'COLORTERM', 'CI']);

/** The root of this repository. */
export const repository = fileURLToPath(new URL('../../..', import.meta.url));
export const skillctlSource = join(repository, 'src/cli/skillctl.ts');
export const examples = join(repository, 'examples/marketplace');

/** A directory of its own, removed when the test ends. */
export async function temporaryDirectory(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'skillctl-test-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Writes a table of files; a value with `mode` sets its permissions. */
export async function writeTree(
  base: string,
  files: Record<string, string | { content: string; mode: number }>,
): Promise<void> {
  for (const [path, file] of Object.entries(files)) {
    const target = join(base, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, typeof file === 'string' ? file : file.content);
    if (typeof file !== 'string') await chmod(target, file.mode);
  }
}

export interface Outcome {
  code: number;
  out: string;
  err: string;
}

/** Runs skillctl in this process. */
export async function skillctl(cwd: string, ...args: string[]): Promise<Outcome> {
  const outcome = { out: '', err: '' };
  const io = {
    cwd,
    colors: false,
    out: (text: string) => {
      outcome.out += text;
    },
    err: (text: string) => {
      outcome.err += text;
    },
  };
  const code = await runSkillctl(args, io, AbortSignal.timeout(WAITING_MS));
  return { code, ...outcome };
}

/** Runs a program as a child and collects what it printed; a non-zero exit is a result, not an error. */
export async function spawnProgram(
  file: string,
  args: string[],
  options: { cwd: string; env?: Record<string, string> },
): Promise<Outcome> {
  const inherited = Object.entries(process.env).filter(([key]) => !COLOR_VARIABLES.has(key));
  const env = { ...Object.fromEntries(inherited), ...options.env };
  try {
    const { stdout, stderr } = await run(file, args, { cwd: options.cwd, env, timeout: TIMEOUT_MS });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const failed = error as { code?: unknown; stdout?: string; stderr?: string };
    if (typeof failed.code !== 'number') throw error;
    return { code: failed.code, out: failed.stdout ?? '', err: failed.stderr ?? '' };
  }
}

/** Runs git with an identity of its own and without the configuration of the machine. */
export async function git(cwd: string, ...args: string[]): Promise<void> {
  const identity = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', '-c', 'init.defaultBranch=main'];
  const env = { ...process.env, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' };
  await run('git', [...identity, ...args], { cwd, env, timeout: TIMEOUT_MS });
}
