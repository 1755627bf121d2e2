import type { Io } from './io.ts';
import { runSkillctl } from './program.ts';

const interrupted = new AbortController();
process.once('SIGINT', () => interrupted.abort(new Error('interrupted')));
process.once('SIGTERM', () => interrupted.abort(new Error('terminated')));
// `skillctl … | head` closes the pipe early; that is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

const io: Io = {
  cwd: process.cwd(),
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  // hasColors also honours NO_COLOR and TERM.
  colors: process.stdout.isTTY === true && process.stdout.hasColors(),
};

process.exitCode = await runSkillctl(process.argv.slice(2), io, interrupted.signal);
