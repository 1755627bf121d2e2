import type { Clock } from './base/clock.ts';
import { messageOf } from './base/errors.ts';
import type { LogControl } from './base/log.ts';
import type { Config } from './config.ts';

/** A mounted ConfigMap changes a minute after the object; nobody notices some seconds more. */
const LOOK_MS = 10_000;

export interface SettingsWatchOptions {
  /** Reads the settings as the start did: command line, environment, file. Throws what is wrong with them. */
  read: () => Config;
  /** The settings that the process runs with. */
  started: Config;
  log: LogControl;
  clock: Clock;
}

/**
 * Takes over a changed log level while the process runs: looks at the settings every ten seconds, and at once by `look()`
 * (SIGHUP). Every other change is told once and counts from the next start; settings that cannot be used change nothing.
 */
export class SettingsWatch {
  readonly #options: SettingsWatchOptions;
  /** What was seen last: the same is not told again. */
  #seen: string;

  constructor(options: SettingsWatchOptions) {
    this.#options = options;
    this.#seen = JSON.stringify(options.started);
  }

  look(): void {
    const { log, read, started } = this.#options;
    try {
      const config = read();
      const text = JSON.stringify(config);
      if (text === this.#seen) return;
      this.#seen = text;
      log.setLevel(config.logLevel);
      const others = namesOfChanged(started, config).filter((name) => name !== 'logLevel');
      const note = others.length > 0 ? `; ${others.join(', ')} count from the next start` : '';
      log.logger.info(
        { logLevel: config.logLevel },
        `the settings changed: the log level is ${config.logLevel}${note}`,
      );
    } catch (error) {
      const problem = messageOf(error);
      if (problem === this.#seen) return;
      this.#seen = problem;
      log.logger.warn(`the changed settings are not taken over: ${problem}`);
    }
  }

  /** Looks again and again until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#options.clock.sleep(LOOK_MS, signal);
      } catch {
        return;
      }
      this.look();
    }
  }
}

function namesOfChanged(before: Config, after: Config): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof Config>;
  return [...names].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name])).sort();
}
