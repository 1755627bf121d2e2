import { Command, CommanderError, Option } from 'commander';
import manifest from '../../package.json' with { type: 'json' };
import { type Clock, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { addClusterCommands } from './cluster/commands.ts';
import { addOperations } from './cluster/operations.ts';
import { EXIT, type ExitCode, type Io } from './io.ts';
import { OUTPUTS, type Output } from './outputs.ts';
import { addPlatform } from './platform-command.ts';
import { printable, printableLines } from './terminal.ts';

const VALIDATE_HELP = `
PATH is a skill (a directory with SKILL.md), a plugin (with skills/) or a marketplace (with plugins/).
In a Git work tree Git's index is checked, which is what a commit would publish: "git add" your changes first.
Elsewhere all files on disk count. Exit code 1: something is invalid. 2: nothing could be checked.

Examples, from the root of the skill-operator repository:
  $ skillctl validate examples/marketplace
  $ skillctl validate examples/marketplace/plugins/data examples/marketplace/plugins/release/skills/deploy-helper
  $ skillctl validate --output json examples/marketplace
  $ skillctl validate --output sarif examples/marketplace > skills.sarif
`;

const PACK_HELP = `
SKILL is one skill directory. The archive has the same bytes on every machine, and digest and version are
those that the operator shows. .skillenv and the Dockerfile count for the digest but are left out of the archive.

Examples, from the root of the skill-operator repository:
  $ skillctl pack examples/marketplace/plugins/release/skills/deploy-helper -o deploy-helper.tar
  $ skillctl pack examples/marketplace/plugins/media/skills/video-thumbnail -o video-thumbnail.tar --output json
`;

/** Builds the command line; `done` receives the exit code of the command that ran. */
function createProgram(
  name: string,
  io: Io,
  clock: Clock,
  signal: AbortSignal,
  done: (code: ExitCode) => void,
): Command {
  const program = new Command(name)
    .description(
      'Checks and packs agent skills with the rules of the operator, and shows and steers them in a cluster.',
    )
    .version(manifest.version)
    .helpCommand(false)
    .showHelpAfterError(`(see ${name} --help)`)
    .exitOverride()
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      outputError: (text, write) => write(printableLines(text)),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  addLocalCommands(program, io, signal, done);
  addPlatform(program, io, clock, signal, done);
  addClusterCommands(program, { io, clock, signal, done });
  addOperations(program, { io, clock, signal, done });
  return program;
}

/** The commands that need no cluster. */
function addLocalCommands(program: Command, io: Io, signal: AbortSignal, done: (code: ExitCode) => void): void {
  program.commandsGroup('On this machine:');
  program
    .command('validate')
    .summary('check skills, plugins or a whole marketplace')
    .description('Checks skills against the SKILL protocol and says for each violation where it is and what to type.')
    .argument('<PATH...>', 'skill, plugin or marketplace directories')
    .addOption(new Option('--output <format>', 'how to print the result').choices(OUTPUTS).default('human'))
    .addHelpText('after', VALIDATE_HELP)
    .action(async (paths: string[], options: { output: Output }) => {
      const { validate } = await import('./validate.ts');
      done(await validate({ paths, output: options.output }, io, signal));
    });
  program
    .command('pack')
    .summary('write the package of one skill')
    .description('Writes the package of one valid skill as a deterministic tar archive and prints its digest.')
    .argument('<SKILL>', 'skill directory')
    .requiredOption('-o <file>', 'the archive to write; an existing file is replaced')
    .addOption(new Option('--output <format>', 'how to print the result').choices(['human', 'json']).default('human'))
    .addHelpText('after', PACK_HELP)
    .action(async (skill: string, options: { o: string; output: 'human' | 'json' }) => {
      const { pack } = await import('./pack.ts');
      done(await pack({ skill, target: options.o, output: options.output }, io, signal));
    });
}

/** Exit code of a usage error that commander raised; help and version end with 0. */
const usageCode = (error: CommanderError): ExitCode => (error.exitCode === 0 ? EXIT.ok : EXIT.usage);

/**
 * Runs `skillctl` with the arguments after the program's name and returns the exit code; never throws.
 * Failures other than violations are one line on `io.err`. `name` is how the program was called.
 */
export async function runSkillctl(
  args: readonly string[],
  io: Io,
  signal: AbortSignal,
  clock: Clock = systemClock,
  name = 'skillctl',
): Promise<ExitCode> {
  let code: ExitCode = EXIT.ok;
  const program = createProgram(name, io, clock, signal, (result) => {
    code = result;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return usageCode(error);
    if (signal.aborted) return EXIT.interrupted;
    io.err(`skillctl: ${printable(messageOf(error))}\n`);
    return error instanceof Error && error.name === 'TimeIsUp' ? EXIT.timeout : EXIT.usage;
  }
}
