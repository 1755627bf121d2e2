import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../../src/jobs/main.ts', import.meta.url));

/** What a job left behind. */
export interface JobRun {
  code: number | null;
  stdout: string;
  stderr: string;
}

const WITH_NARROW_UMASK = 'umask 077; exec "$@"';

/** Runs a job as the container does: its own process, nothing of this one's environment, and the narrowest umask. `onStart` gets a way to signal it. */
export async function runJob(
  argv: readonly string[],
  onStart?: (kill: (signal: NodeJS.Signals) => void) => void,
): Promise<JobRun> {
  const child = spawn('/bin/sh', ['-c', WITH_NARROW_UMASK, 'sh', process.execPath, MAIN, ...argv], {
    env: {},
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => {
      output[name] += chunk.toString('utf8');
    });
  }
  onStart?.((signal) => child.kill(signal));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, ...output };
}
