import { AsyncLocalStorage } from 'node:async_hooks';

/** What every log line of a piece of work carries; values are names and ids, never content. */
export type LogFields = Readonly<Record<string, string>>;

const current = new AsyncLocalStorage<LogFields>();

/** Runs `fn` with these fields, on top of those around it, in every log line that it leads to, however deep. */
export const withLogFields = <T>(fields: LogFields, fn: () => T): T =>
  current.run({ ...current.getStore(), ...fields }, fn);

/** The fields of the work under way; a new object each time, since the logger fills it up. */
export const logFields = (): Record<string, string> => ({ ...current.getStore() });
