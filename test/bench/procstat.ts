import { readFileSync } from 'node:fs';

/** What the kernel knows of a process. */
export interface ProcessFigures {
  /** CPU seconds of its own threads. */
  cpu: number;
  /** CPU seconds of its children that have ended (the git processes). */
  childCpu: number;
  /** Resident memory now and at most so far, MiB. */
  rss: number;
  peakRss: number;
}

/** Linux counts CPU time in hundredths of a second for every program that reads /proc. */
const TICKS_PER_SECOND = 100;

function mib(status: string, field: string): number {
  const kib = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1];
  return Number(kib ?? Number.NaN) / 1024;
}

/** Reads /proc/<pid>; throws when the process is gone. */
export function figuresOf(pid: number): ProcessFigures {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field is a name in brackets that may hold blanks; utime is the 14th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const seconds = (first: number) => (Number(fields[first]) + Number(fields[first + 1])) / TICKS_PER_SECOND;
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return { cpu: seconds(11), childCpu: seconds(13), rss: mib(status, 'VmRSS'), peakRss: mib(status, 'VmHWM') };
}
