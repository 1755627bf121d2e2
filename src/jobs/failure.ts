import type { ExitCode } from '../build/exits.ts';

/** The end of a job without its result: the exit code tells the operator, the message tells people. */
export class JobError extends Error {
  override readonly name = 'JobError';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, options?: { cause: unknown }) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** `ENOENT` and the like; empty for errors without a code. */
export const codeOf = (error: unknown): string => {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === 'string') return code;
  return cause === undefined ? '' : codeOf(cause);
};
