import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { basename, join } from 'node:path';

const MOUNT = /^\S+ (\/sys\/fs\/cgroup\S*) cgroup2? /gm;

/** Mount points of this machine's cgroup hierarchies: several of version 1, one of version 2, or both. */
export const hierarchies = (mounts = readFileSync('/proc/mounts', 'utf8')): string[] =>
  [...mounts.matchAll(MOUNT)].map(([, path = '']) => path);

/** Name of the cgroup below which all pods of a run live, in every hierarchy. */
export const cgroupName = (runDir: string): string => `skill-operator-${basename(runDir)}`;

/** Makes the run's cgroup in every hierarchy. */
export function createCgroups(runDir: string): void {
  for (const root of hierarchies()) mkdirSync(join(root, cgroupName(runDir)), { recursive: true });
}

/** Removes a cgroup with those below it; fails with EBUSY while a process is left in it. */
function removeTree(path: string): void {
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(path, entry.name));
  }
  rmdirSync(path);
}

/** Removes the run's cgroups; a run without any is no error. */
export function removeCgroups(runDir: string): void {
  for (const root of hierarchies()) {
    const path = join(root, cgroupName(runDir));
    if (existsSync(path)) removeTree(path);
  }
}
