import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { removeCgroups } from './node/cgroups.ts';
import { identify, isAlive, killHard, type ProcessId } from './procfs.ts';

/** A killed process is gone within moments; the last one of a node first ends all that runs there. */
const END_TIMEOUT_MS = 10_000;
const POLL_MS = 10;
const RUN_NAME = /^run-(\d+)-(\d+)-/;

/** Folder below which every run of this user lies; created with mode 0700. */
export function baseDir(): string {
  const { uid } = userInfo();
  const dir = join(tmpdir(), `skill-operator-test-${uid}`);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  if (process.getuid && statSync(dir).uid !== uid) {
    throw new Error(`${dir} belongs to somebody else; set TMPDIR to a folder of your own and start again.`);
  }
  return dir;
}

/** Creates the directory of a run owned by this process. The owner is part of the name, so there is no moment without one. */
export function createRunDir(): string {
  const { pid, startTime } = identify(process.pid);
  const dir = mkdtempSync(join(baseDir(), `run-${pid}-${startTime}-`));
  for (const sub of ['bin', 'pids', 'log', 'pki']) mkdirSync(join(dir, sub));
  return dir;
}

/** The owner that the name of a run directory tells; undefined for anything else. */
export function ownerOf(name: string): ProcessId | undefined {
  const [, pid, startTime] = RUN_NAME.exec(name) ?? [];
  return pid && startTime ? { pid: Number(pid), startTime } : undefined;
}

/** The processes that a run recorded in `<run>/pids`. */
export function recordedProcesses(dir: string): ProcessId[] {
  let names: string[];
  try {
    names = readdirSync(join(dir, 'pids'));
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    const [pid, startTime] = readFileSync(join(dir, 'pids', name), 'utf8')
      .trim()
      .split(' ');
    return pid && startTime ? [{ pid: Number(pid), startTime }] : [];
  });
}

/** Ends what a run left behind and removes its directory. Kills only processes that the run recorded and that are still the same. */
export async function removeRun(dir: string): Promise<void> {
  const processes = recordedProcesses(dir);
  for (const id of processes) killHard(id);
  const deadline = performance.now() + END_TIMEOUT_MS;
  while (processes.some(isAlive) && performance.now() < deadline) await delay(POLL_MS);
  removeCgroups(dir);
  rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

/** Removes the runs whose owner is dead; returns their directories. */
export async function sweep(): Promise<string[]> {
  const base = baseDir();
  const stale = readdirSync(base)
    .filter((name) => {
      const owner = ownerOf(name);
      return owner !== undefined && !isAlive(owner);
    })
    .map((name) => join(base, name));
  for (const dir of stale) await removeRun(dir);
  return stale;
}
