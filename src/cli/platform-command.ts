import { type Command, Option } from 'commander';
import type { Clock } from '../base/clock.ts';
import type { Engine } from '../protocol/types.ts';
import type { ExitCode, Io } from './io.ts';
import type { Language } from './platform.ts';

const ENGINES: readonly Engine[] = ['cubesandbox', 'e2b'];
const LANGUAGES: readonly Language[] = ['python', 'node'];

const REGISTER_HELP = `
Build an image of images/ first, push it, and give its digest. The command waits until the engine has made the
template, which takes minutes, and prints the entry for the operator's settings (--config). A second run with the
same image finds the template of the first. Exit code 2: the engine refused, and the message says what to do.

Examples:
  skillctl platform register --engine cubesandbox --url http://cube-api.cube-system:3000 \\
    --image registry.example.com/skills/cubesandbox-python@sha256:<digest>
  skillctl platform register --engine e2b --url https://api.e2b.app --key-file e2b.key \\
    --image registry.example.com/skills/e2b-node@sha256:<digest> \\
    --registry-username puller --registry-password-file puller.password
`;

interface Flags {
  engine: Engine;
  image: string;
  url: string;
  language?: Language;
  keyFile?: string;
  caFile?: string;
  registryUsername?: string;
  registryPasswordFile?: string;
  cubeCa: boolean;
  plainHttpRegistry: boolean;
  output: 'human' | 'json';
}

/** Adds `platform register` to the command line. */
export function addPlatform(
  program: Command,
  io: Io,
  clock: Clock,
  signal: AbortSignal,
  done: (code: ExitCode) => void,
) {
  program
    .command('platform')
    .summary('templates of the platform’s own images')
    .description('Registers the images of the platform’s runtimes with the sandbox engines.')
    .helpCommand(false)
    .command('register')
    .summary('make a template of a platform image')
    .description('Makes a template of an image at its engine and prints the entry of the map tier1 for the operator.')
    .addOption(new Option('--engine <engine>', 'the sandbox engine').choices(ENGINES).makeOptionMandatory())
    .requiredOption('--image <image>', 'the image, pinned: <repository>@sha256:<digest>')
    .requiredOption('--url <url>', 'address of the engine’s API')
    .addOption(new Option('--language <language>', 'default: what the image’s name contains').choices(LANGUAGES))
    .option('--key-file <file>', 'file with the API key of the engine; /dev/stdin works')
    .option('--ca-file <file>', 'PEM file with the CA of the engine')
    .option('--registry-username <name>', 'user with which the engine pulls the image')
    .option('--registry-password-file <file>', 'file with the password of that user')
    .option('--plain-http-registry', 'cubesandbox: the registry speaks plain http', false)
    .option('--no-cube-ca', 'cubesandbox: do not add the CA of its egress proxy')
    .addOption(new Option('--output <format>', 'how to print the result').choices(['human', 'json']).default('human'))
    .addHelpText('after', REGISTER_HELP)
    .action(async (flags: Flags) => {
      const { registerPlatform } = await import('./platform.ts');
      done(await registerPlatform(flags, io, clock, signal));
    });
}
