import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const MOUNT = /^\S+ (\/sys\/fs\/cgroup\S*) cgroup2? /gm;
/** What a kubelet insists on in the cgroup that it is given. */
const CONTROLLERS = ['cpu', 'cpuset', 'hugetlb', 'memory', 'pids'];

/** Mount points of this machine's cgroup hierarchies: several of version 1, one of version 2, or both. */
export const hierarchies = (mounts = readFileSync('/proc/mounts', 'utf8')): string[] =>
  [...mounts.matchAll(MOUNT)].map(([, path = '']) => path);

/** Name of the cgroup below which all pods of a run live, in every hierarchy. */
export const cgroupName = (runDir: string): string => `skill-operator-${basename(runDir)}`;

/** In version 2 a cgroup has the controllers that its parent hands down. */
function handDown(root: string): void {
  const present = new Set(readFileSync(join(root, 'cgroup.controllers'), 'utf8').trim().split(' '));
  const wanted = CONTROLLERS.filter((name) => present.has(name)).map((name) => `+${name}`);
  writeFileSync(join(root, 'cgroup.subtree_control'), wanted.join(' '));
}

/** Makes the run's cgroup in every hierarchy. */
export function createCgroups(runDir: string): void {
  const roots = hierarchies();
  // Beside version 1 the hierarchy of version 2 controls nothing.
  const [only] = roots;
  if (only !== undefined && roots.length === 1 && existsSync(join(only, 'cgroup.controllers'))) handDown(only);
  for (const root of roots) mkdirSync(join(root, cgroupName(runDir)), { recursive: true });
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
