import { readFileSync } from 'node:fs';

/** What identifies a process beyond its pid, which the kernel hands out again. */
export interface ProcessId {
  pid: number;
  /** Start time in clock ticks since boot (field 22 of /proc/<pid>/stat). */
  startTime: string;
}

/** Start time of a live process; undefined when there is none or it is a zombie. */
function startTimeOf(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field is the program name in parentheses and may itself contain blanks and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' ? undefined : fields[19];
}

/** The process as it can be recognised later; throws when it does not exist. */
export function identify(pid: number): ProcessId {
  const startTime = startTimeOf(pid);
  if (startTime === undefined) throw new Error(`process ${pid} has ended`);
  return { pid, startTime };
}

/** True while this very process runs (not another one with the same pid). */
export const isAlive = (id: ProcessId): boolean => startTimeOf(id.pid) === id.startTime;

/** Sends SIGKILL to the process, and to its group when it leads one; a process that is gone is no error. */
export function killHard(id: ProcessId): void {
  for (const target of [-id.pid, id.pid]) {
    if (!isAlive(id)) return;
    try {
      process.kill(target, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}
