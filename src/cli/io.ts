/** Everything a command may touch of the process, so that tests run it in their own. */
export interface Io {
  /** The current directory, absolute; relative PATH arguments start here. */
  cwd: string;
  /** Results. */
  out: (text: string) => void;
  /** Notes, progress and errors. */
  err: (text: string) => void;
  /** Whether `out` is a terminal that wants colours. */
  colors: boolean;
  /** Columns of the terminal behind `out`; absent: not a terminal, nothing is cut. */
  columns?: number | undefined;
  /** Whether `err` is a terminal on which a line of progress can be replaced. */
  live?: boolean | undefined;
  /** Asks a person and resolves with the line that was typed; absent: nobody can answer. */
  ask?: ((question: string, signal: AbortSignal) => Promise<string>) | undefined;
}

/**
 * Exit codes: all well · the answer is no (rules broken, not Ready, a check failed, something remains) · the command could not do its
 * work (usage, unreadable path, no cluster) · `--timeout` is up · Ctrl-C.
 */
export const EXIT = { ok: 0, violations: 1, no: 1, usage: 2, timeout: 3, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
