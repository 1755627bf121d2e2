/** `make check`: every static check at once, one line each with its time, and the output of those that fail. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Check {
  name: string;
  /** What to do when it fails. */
  fix: string;
  /** Program of node_modules/.bin, or a script for Node itself. */
  command: readonly [program: string, ...args: string[]];
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BIN = join(ROOT, 'node_modules', '.bin');
const TIMEOUT_MS = 5 * 60_000;

const CHECKS: readonly Check[] = [
  { name: 'types', fix: 'mend the types named above', command: ['tsc', '-p', '.'] },
  { name: 'lint and format', fix: 'npx biome check --write', command: ['biome', 'check', '--error-on-warnings', '.'] },
  {
    name: 'layer rules bite',
    fix: 'mend noRestrictedImports in biome.json',
    command: ['vitest', 'run', '--project', 'unit', 'test/unit/layers.test.ts'],
  },
  { name: 'dead code', fix: 'remove what nobody uses', command: ['knip', '--no-progress'] },
  { name: 'generated files', fix: 'make generate', command: ['node', 'scripts/generate.ts', '--check'] },
];

interface Outcome {
  check: Check;
  ok: boolean;
  seconds: number;
  output: string;
}

async function run(check: Check): Promise<Outcome> {
  const began = performance.now();
  const [program, ...args] = check.command;
  const file = program === 'node' ? process.execPath : join(BIN, program);
  const child = spawn(file, args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    // The programs of node_modules/.bin find the pinned Node by PATH.
    env: { ...process.env, PATH: `${BIN}:${process.env.PATH ?? ''}` },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
  const { promise, resolve } = Promise.withResolvers<boolean>();
  child.on('error', (error) => {
    chunks.push(Buffer.from(String(error)));
    resolve(false);
  });
  child.on('close', (code) => resolve(code === 0));
  const ok = await promise;
  return {
    check,
    ok,
    seconds: (performance.now() - began) / 1000,
    output: Buffer.concat(chunks).toString('utf8').trim(),
  };
}

function print({ check, ok, seconds, output }: Outcome): void {
  console.log(`${ok ? 'ok  ' : 'FAIL'}  ${check.name.padEnd(18)} ${seconds.toFixed(1).padStart(5)} s`);
  if (!ok) console.log(`${output}\n      → ${check.fix}\n`);
}

const outcomes = await Promise.all(
  CHECKS.map(async (check) => {
    const outcome = await run(check);
    print(outcome);
    return outcome;
  }),
);
const failed = outcomes.filter(({ ok }) => !ok).map(({ check }) => check.name);
console.log(failed.length === 0 ? `All ${outcomes.length} checks passed.` : `Failed: ${failed.join(', ')}.`);
process.exitCode = failed.length === 0 ? 0 : 1;
