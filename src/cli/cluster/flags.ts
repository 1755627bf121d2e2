import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../../api/defaults.ts';
import { OPERATOR_NAMESPACE } from './home.ts';

/** Adds the flags by which kubectl chooses a cluster. */
export const clusterFlags = (command: Command): Command =>
  command
    .optionsGroup('Cluster:')
    .option('--kubeconfig <file>', 'kubeconfig to use (default: $KUBECONFIG, then ~/.kube/config)')
    .option('--context <name>', 'context of the kubeconfig (default: its current one)')
    .option('-n, --namespace <name>', 'namespace (default: that of the context)');

/** Adds `--operator-namespace`. */
export const operatorFlag = (command: Command): Command =>
  command.option(
    '--operator-namespace <name>',
    `namespace of the operator (default: where its Deployment is, else ${OPERATOR_NAMESPACE})`,
  );

/** Adds `-o, --output`, whose first choice is the default. */
export const outputFlag = (command: Command, ...more: string[]): Command =>
  command.addOption(
    new Option('-o, --output <format>', 'how to print the result').choices(['human', 'json', ...more]).default('human'),
  );

/** Milliseconds of `90s`, `5m`, `1h30m`. */
function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0) throw new InvalidArgumentError('give a time such as 90s, 5m or 1h30m');
  return ms;
}

/** Adds `--timeout` with a default such as `5m`. */
export const timeoutFlag = (command: Command, preset: string, what: string): Command =>
  command.addOption(
    new Option('--timeout <time>', what).argParser(duration).default(parseDuration(preset) ?? 0, preset),
  );
