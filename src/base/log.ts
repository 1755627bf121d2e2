import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino';
import { redact } from './redact.ts';

/** A structured logger; every line passes through `redact`. */
export type Logger = PinoLogger;

/** JSON lines to `destination` (stdout by default); `level` is a pino level name. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: redact },
    },
    destination ?? pino.destination({ dest: 1, sync: false }),
  );
}

/** A logger that writes nothing, for callers without one. */
export const silentLogger: Logger = pino({ level: 'silent' });
