import type { Command } from 'commander';
import type { Clock } from '../../base/clock.ts';
import type { ExitCode, Io } from '../io.ts';
import { clusterFlags, outputFlag, timeoutFlag } from './flags.ts';
import type { GetFlags } from './get.ts';
import type { RequestFlags } from './requests.ts';
import type { TraceFlags } from './trace.ts';

/** What the actions of the commands work with. */
export interface Wiring {
  io: Io;
  clock: Clock;
  signal: AbortSignal;
  /** Takes the exit code of the command that ran. */
  done: (code: ExitCode) => void;
}

const GET_HELP = `
Examples:
  $ skillctl get
  $ skillctl get skills -A
  $ skillctl get source team -n default -o yaml
`;

const TRACE_HELP = `
SKILL is the name of the Skill object, <plugin>/<skill>, or the bare name. A skill that never became an object is
looked for among the problems of the sources. Exit code 1: it is not served as its source has it, and the last lines
say where it stopped, why, and what to type.

Examples:
  $ skillctl trace pdf
  $ skillctl trace docs/pdf -o json
`;

const RECONCILE_HELP = `
Looks at Git (source) or at content, store and engine (skill) now, without waiting for the interval.
Exit code with --wait: 0 Ready, 1 not Ready, 3 no outcome within --timeout.

Examples:
  $ skillctl reconcile team
  $ skillctl reconcile source team --wait
  $ skillctl reconcile source team --with-skills --timeout 10m
  $ skillctl reconcile skill pdf --wait
`;

const SUSPEND_HELP = `
Nothing is fetched, built or registered until it is resumed; what is served stays served.

Examples:
  $ skillctl suspend team
  $ skillctl suspend skill pdf
`;

const RESUME_HELP = `
Examples:
  $ skillctl resume team
  $ skillctl resume skill pdf
`;

const REBUILD_HELP = `
Builds the image of a skill with a Dockerfile anew, for a new base image; the version that is served stays until the
new one is ready. Exit codes are those of reconcile.

Examples:
  $ skillctl rebuild pdf
  $ skillctl rebuild pdf --wait --timeout 30m
`;

function addGet(program: Command, { io, clock, signal, done }: Wiring): void {
  const command = program
    .command('get')
    .summary('list sources and skills with their state')
    .description('Lists MarketplaceSources and Skills: state, version, reason and age.')
    .argument('[WHAT...]', '"sources", "skills" or "source NAME", "skill NAME"; nothing: both kinds')
    .option('-A, --all-namespaces', 'of the whole cluster');
  clusterFlags(outputFlag(command, 'yaml'))
    .addHelpText('after', GET_HELP)
    .action(async (words: string[], flags: GetFlags) => {
      const { get } = await import('./get.ts');
      done(await get(words, flags, io, clock, signal));
    });
}

function addTrace(program: Command, { io, clock, signal, done }: Wiring): void {
  const command = program
    .command('trace')
    .summary('follow one skill from its source to its template')
    .description('Follows one skill: source → commit → version → build → template, and says where and why it stopped.')
    .argument('<SKILL>', 'the skill');
  clusterFlags(outputFlag(command))
    .addHelpText('after', TRACE_HELP)
    .action(async (name: string, flags: TraceFlags) => {
      const { trace } = await import('./trace.ts');
      done(await trace(name, flags, io, clock, signal));
    });
}

function addReconcile(program: Command, { done, ...around }: Wiring): void {
  const command = program
    .command('reconcile')
    .summary('ask for a pass now')
    .description('Asks the operator to look at a source or a skill now.')
    .argument('<WHAT...>', '[source|skill] NAME')
    .option('--wait', 'wait for the outcome and tell it')
    .option('--with-skills', 'source: wait for its skills too; exit code 1 when one needs a change');
  clusterFlags(outputFlag(timeoutFlag(command, '5m', 'how long to wait')))
    .addHelpText('after', RECONCILE_HELP)
    .action(async (words: string[], flags: RequestFlags) => {
      const { reconcile } = await import('./requests.ts');
      done(await reconcile(words, flags, around));
    });
}

function addSuspend(program: Command, { done, ...around }: Wiring): void {
  const add = (name: 'suspend' | 'resume', summary: string, help: string) => {
    const command = program
      .command(name)
      .summary(summary)
      .description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`)
      .argument('<WHAT...>', '[source|skill] NAME');
    clusterFlags(outputFlag(command))
      .addHelpText('after', help)
      .action(async (words: string[], flags: RequestFlags) => {
        const { setSuspend } = await import('./requests.ts');
        done(await setSuspend(words, name === 'suspend', flags, around));
      });
  };
  add('suspend', 'stop work on a source or a skill', SUSPEND_HELP);
  add('resume', 'go on with a suspended source or skill', RESUME_HELP);
}

function addRebuild(program: Command, { done, ...around }: Wiring): void {
  const command = program
    .command('rebuild')
    .summary('build the image of a skill again')
    .description('Asks the operator to build the image of a skill again from the same content.')
    .argument('<SKILL>', 'the skill')
    .option('--wait', 'wait for the outcome and tell it');
  clusterFlags(outputFlag(timeoutFlag(command, '60m', 'how long to wait')))
    .addHelpText('after', REBUILD_HELP)
    .action(async (name: string, flags: RequestFlags) => {
      const { rebuild } = await import('./requests.ts');
      done(await rebuild(name, flags, around));
    });
}

/** Adds the commands that look at a cluster and ask the operator for something. */
export function addClusterCommands(program: Command, wiring: Wiring): void {
  program.commandsGroup('In a cluster:');
  for (const add of [addGet, addTrace, addReconcile, addSuspend, addRebuild]) add(program, wiring);
}
