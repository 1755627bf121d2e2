import type { TestProject } from 'vitest/node';
import { type Cluster, startCluster } from '../cluster/start.ts';

interface Shared {
  cluster: Promise<Cluster>;
  users: number;
}

/** Every project loads this module anew, so the one cluster of the test run hangs on the process. */
const KEY = Symbol.for('skill-operator.test-cluster');
const holder = globalThis as { [KEY]?: Shared };

const say = (line: string): void => {
  process.stderr.write(`[test cluster] ${line}\n`);
};

async function start(): Promise<Cluster> {
  const began = performance.now();
  say('starting API server, S3 and Git');
  const cluster = await startCluster({ say });
  say(`ready after ${((performance.now() - began) / 1000).toFixed(1)} s in ${cluster.info.runDir}`);
  return cluster;
}

/** Vitest's global setup: one cluster for all projects of a run; tests get its addresses with `inject('cluster')`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  holder[KEY] ??= { cluster: start(), users: 0 };
  const shared = holder[KEY];
  shared.users++;
  const cluster = await shared.cluster;
  project.provide('cluster', cluster.info);
  return async () => {
    shared.users--;
    if (shared.users > 0) return;
    delete holder[KEY];
    await cluster.stop();
  };
}
