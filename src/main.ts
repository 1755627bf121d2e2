import { setFlagsFromString } from 'node:v8';
import { systemClock } from './base/clock.ts';
import { messageOf } from './base/errors.ts';
import { createLogger } from './base/log.ts';
import { type Config, loadConfig, usage } from './config.ts';
import { runOperator } from './operator.ts';
import { SettingsWatch } from './reload.ts';

// A burst of new Skills leaves tens of MiB of garbage, which the engine would keep until the heap has doubled several times: peak memory
// falls from 230 to 150 MiB (test/bench, cold 1000) for a tenth more CPU. Set here since NODE_OPTIONS does not accept it.
setFlagsFromString('--heap-growing-percent=50');

/** Exit codes: 0 stopped by a signal, 1 cannot go on, 2 wrong settings. */
async function main(): Promise<number> {
  let settings: ReturnType<typeof loadConfig>;
  try {
    settings = read();
  } catch (error) {
    console.error(messageOfLines(error));
    return 2;
  }
  if ('help' in settings) {
    console.log(usage());
    return 0;
  }
  const { config } = settings;
  const control = createLogger(config.logLevel);
  const { logger: log } = control;
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.once(name, () => {
      log.info({ signal: name }, 'stopping');
      stop.abort(new DOMException('the operator is stopping', 'AbortError'));
    });
  }
  const changes = new SettingsWatch({ read: readAgain, started: config, log: control, clock: systemClock });
  process.on('SIGHUP', () => changes.look());
  void changes.run(stop.signal);
  process.on('unhandledRejection', (error) => {
    log.fatal({ err: error }, 'unhandled rejection');
    process.exit(1);
  });
  try {
    await runOperator(config, log, stop.signal);
    return 0;
  } catch (error) {
    if (stop.signal.aborted) return 0;
    log.fatal({ err: error }, messageOf(error));
    return 1;
  }
}

const read = () => loadConfig(process.argv.slice(2));

function readAgain(): Config {
  const again = read();
  if ('help' in again) throw new Error('the command line asks for help');
  return again.config;
}

/** The settings error lists one line per setting, which the usual one-line form would join. */
const messageOfLines = (error: unknown): string => (error instanceof Error ? error.message : String(error));

process.exitCode = await main();
// Sockets of aborted calls may linger; nothing is left to do.
process.exit();
