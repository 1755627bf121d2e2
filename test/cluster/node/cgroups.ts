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

const GONE_MS = 15_000;
const LOOK_MS = 50;

/** Removes a cgroup with those below it; a process that is ending gets its time, then it fails with EBUSY. */
function removeTree(path: string): void {
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(path, entry.name));
  }
  const began = performance.now();
  for (;;) {
    try {
      rmdirSync(path);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY' || performance.now() - began > GONE_MS) throw error;
    }
    // The kernel tells nobody when the last process of a cgroup is gone.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS);
  }
}

/** Removes the run's cgroups; a run without any is no error. */
export function removeCgroups(runDir: string): void {
  for (const root of hierarchies()) {
    const path = join(root, cgroupName(runDir));
    if (existsSync(path)) removeTree(path);
  }
}
