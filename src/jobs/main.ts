/** Entry of the programs in a build Job's pod: `node dist/jobs.js fetch|push`. */
import { systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { EXIT, type ExitCode } from '../build/exits.ts';
import { parseCommand, USAGE } from './arguments.ts';
import { JobError } from './failure.ts';
import { fetchContext } from './fetch.ts';
import { pushImage } from './push.ts';

async function run(argv: readonly string[], signal: AbortSignal): Promise<string> {
  const job = parseCommand(argv);
  if (job.command === 'help') return USAGE.trimEnd();
  if (job.command === 'fetch') return `fetched ${await fetchContext(job.options, systemClock, signal)} files`;
  const { digest, size } = await pushImage(job.options, systemClock, signal);
  return `pushed ${job.options.image}@${digest}, ${size} bytes`;
}

/** One line, which becomes the message of the container when it fails. */
function report(error: unknown, signal: AbortSignal): ExitCode | 1 {
  const stopped = signal.aborted;
  process.stderr.write(`error: ${stopped ? 'told to stop' : messageOf(error)}\n`);
  if (stopped) return EXIT.Stopped;
  return error instanceof JobError ? error.exitCode : 1;
}

const controller = new AbortController();
// Process 1 of a container has no default action for signals.
for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => controller.abort(new Error(name)));
try {
  process.stdout.write(`${await run(process.argv.slice(2), controller.signal)}\n`);
} catch (error) {
  process.exitCode = report(error, controller.signal);
}
