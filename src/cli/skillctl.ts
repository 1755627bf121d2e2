import { basename } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { systemClock } from '../base/clock.ts';
import type { Io } from './io.ts';
import { runSkillctl } from './program.ts';

const interrupted = new AbortController();
process.once('SIGINT', () => interrupted.abort(new Error('interrupted')));
process.once('SIGTERM', () => interrupted.abort(new Error('terminated')));
// `skillctl … | head` closes the pipe early; that is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

const { stdin, stdout, stderr } = process;

/** One line from the terminal; what is asked goes to standard error, so that results can be piped. */
async function ask(question: string, signal: AbortSignal): Promise<string> {
  const lines = createInterface({ input: stdin, output: stderr });
  try {
    return await lines.question(question, { signal });
  } finally {
    lines.close();
  }
}

const io: Io = {
  cwd: process.cwd(),
  out: (text) => stdout.write(text),
  err: (text) => stderr.write(text),
  // hasColors also honours NO_COLOR and TERM.
  colors: stdout.isTTY === true && stdout.hasColors(),
  columns: stdout.isTTY === true ? stdout.columns : undefined,
  // A terminal that takes no colours may not be able to replace a line either.
  live: stderr.isTTY === true && stderr.hasColors(),
  ...(stdin.isTTY === true ? { ask } : {}),
};

/** kubectl runs its plugin `kubectl-skills` as `kubectl skills`. */
const name = /^kubectl-skills(\.js)?$/.test(basename(process.argv[1] ?? '')) ? 'kubectl skills' : 'skillctl';

process.exitCode = await runSkillctl(process.argv.slice(2), io, interrupted.signal, systemClock, name);
