import type { Command } from 'commander';
import type { DoctorFlags } from '../doctor/doctor.ts';
import type { LogsFlags } from '../logs/logs.ts';
import type { UninstallFlags } from '../uninstall/uninstall.ts';
import type { Wiring } from './commands.ts';
import { clusterFlags, operatorFlag, outputFlag, timeoutFlag } from './flags.ts';

const LOGS_HELP = `
Prints the three steps of the build pod (fetch, build, push) as they run; while the build waits for its turn the command
waits with it. When the pod is gone, or its node cannot be reached, the end of the log that the status keeps is shown.
Exit code 1: the build failed.

Examples:
  $ skillctl logs --build pdf
  $ skillctl logs --build pdf --no-follow
`;

const DOCTOR_HELP = `
Each check says ok, warn or FAIL, and how to mend it. Store, registry and engines are asked with the operator's own
Secrets where you may read those. Exit code 1: something says FAIL.

Examples:
  $ skillctl doctor
  $ skillctl doctor --operator-namespace skill-operator-system -o json
`;

const UNINSTALL_HELP = `
Without --yes nothing is changed: it shows what would go, and which images and templates are outside the cluster.
With --yes: sources first, then Skills; waits until the operator has removed their images and templates; then names the
commands that remove the release and the CRDs. It never hangs: with a dead operator, or when store or engines are gone,
it says what remains. -n restricts it to one namespace. Exit code 1: Skills remain.

Examples:
  $ skillctl uninstall
  $ skillctl uninstall --yes
  $ skillctl uninstall --yes --orphan
  $ skillctl uninstall --yes --force --timeout 1m
`;

function addLogs(program: Command, { done, ...around }: Wiring): void {
  const command = program
    .command('logs')
    .summary('show the log of an image build')
    .description('Shows the log of the image build of a skill, and follows it while it runs.')
    .argument('<SKILL>', 'object name, <plugin>/<skill>, or bare name')
    .option('--build', 'the log of the build (the only log that a skill has; may be left out)')
    .option('--no-follow', 'print what there is and end')
    .option('--build-namespace <name>', 'namespace of the build pods (default: from the settings of the operator)');
  operatorFlag(clusterFlags(outputFlag(timeoutFlag(command, '60m', 'how long to wait for a build to start'))))
    .addHelpText('after', LOGS_HELP)
    .action(async (name: string, flags: LogsFlags) => {
      const { logs } = await import('../logs/logs.ts');
      done(await logs(name, flags, around));
    });
}

function addDoctor(program: Command, { done, ...around }: Wiring): void {
  const command = program
    .command('doctor')
    .summary('check the installation')
    .description(
      'Checks what the operator needs: rights, CRDs, Lease, store, registry, engines, build namespace, logs, blocks.',
    )
    .option('--config <file>', "the operator's settings file (default: that of its Deployment)")
    .option('--build-namespace <name>', 'namespace of the build pods (default: from the settings)');
  operatorFlag(clusterFlags(outputFlag(command)))
    .addHelpText('after', DOCTOR_HELP)
    .action(async (flags: DoctorFlags) => {
      const { doctor } = await import('../doctor/doctor.ts');
      done(await doctor(flags, around));
    });
}

function addUninstall(program: Command, { done, ...around }: Wiring): void {
  const command = program
    .command('uninstall')
    .summary('remove all sources and skills in the right order')
    .description('Removes all MarketplaceSources and Skills with their images and templates, and says what to do next.')
    .option('--yes', 'do it; without this flag nothing is changed')
    .option('--orphan', 'leave images and templates where they are')
    .option('--force', 'take the finalizer off Skills that do not go, and leave their images and templates behind');
  operatorFlag(clusterFlags(outputFlag(timeoutFlag(command, '12m', 'how long to wait for the operator'))))
    .addHelpText('after', UNINSTALL_HELP)
    .action(async (flags: UninstallFlags) => {
      const { uninstall } = await import('../uninstall/uninstall.ts');
      done(await uninstall(flags, around));
    });
}

/** Adds the commands for those who run the operator. */
export function addOperations(program: Command, wiring: Wiring): void {
  addLogs(program, wiring);
  program.commandsGroup('For administrators:');
  addDoctor(program, wiring);
  addUninstall(program, wiring);
}
