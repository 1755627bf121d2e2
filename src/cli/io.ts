/** Everything a command may touch of the process, so that tests run it in their own. */
export interface Io {
  /** The current directory, absolute; relative PATH arguments start here. */
  cwd: string;
  /** Results. */
  out: (text: string) => void;
  /** Notes and errors. */
  err: (text: string) => void;
  /** Whether `out` is a terminal that wants colours. */
  colors: boolean;
}

/** Exit codes: all well · content breaks rules · the command could not do its work (usage, unreadable path). */
export const EXIT = { ok: 0, violations: 1, usage: 2, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
