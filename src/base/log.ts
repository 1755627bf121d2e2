import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino';
import { logFields } from './context.ts';
import { redact } from './redact.ts';

/** A structured logger; every line passes through `redact`. */
export type Logger = PinoLogger;

/** The levels that a setting may name, the most talkative first. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** What the loggers are made with; the level may change while they are used. */
export interface LogControl {
  readonly logger: Logger;
  /** Takes effect at once for this logger and every child that was or will be made of it. */
  setLevel(level: LogLevel): void;
}

/** JSON lines to `destination` (stdout by default), each with the fields of the work that wrote it (`withLogFields`). */
export function createLogger(level: LogLevel, destination?: DestinationStream): LogControl {
  let threshold = levelValue(level);
  const logger = pino(
    {
      // A child keeps the level that it was made with, so the one that can change is asked below.
      level: 'trace',
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      mixin: logFields,
      hooks: {
        streamWrite: redact,
        logMethod(args, method, value) {
          if (value >= threshold) method.apply(this, args);
        },
      },
    },
    destination ?? pino.destination({ dest: 1, sync: false }),
  );
  return {
    logger,
    setLevel: (next) => {
      threshold = levelValue(next);
    },
  };
}

const levelValue = (level: LogLevel): number =>
  level === 'silent' ? Number.POSITIVE_INFINITY : (pino.levels.values[level] ?? 0);

/** A logger that writes nothing, for callers without one. */
export const silentLogger: Logger = pino({ level: 'silent' });
