import type { TestProject } from 'vitest/node';
import { type Cluster, startCluster, whyNoNode } from '../cluster/start.ts';

interface Shared {
  cluster: Promise<Cluster>;
  users: number;
}

/** Every project loads this module anew, so the clusters of the test run hang on the process. */
const KEY = Symbol.for('skill-operator.test-clusters');
const holder = globalThis as { [KEY]?: Map<string, Shared> };

const say = (line: string): void => {
  process.stderr.write(`[test cluster] ${line}\n`);
};

/** True for the project whose tests run pods, where this machine can; says once why it cannot. */
async function wantsNode(project: TestProject): Promise<boolean> {
  if (project.name !== 'e2e') return false;
  const why = await whyNoNode();
  if (why !== undefined) say(`tests that need a node are skipped: ${why}`);
  return why === undefined;
}

async function start(node: boolean): Promise<Cluster> {
  const began = performance.now();
  say(`starting API server, S3 and Git${node ? ', and a node for pods' : ''}`);
  const cluster = await startCluster({ say, node });
  say(`ready after ${((performance.now() - began) / 1000).toFixed(1)} s in ${cluster.info.runDir}`);
  return cluster;
}

/** Vitest's global setup: one cluster for all projects of a run, and one with a node for e2e; tests get its addresses with `inject('cluster')`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const node = await wantsNode(project);
  const kind = node ? 'node' : 'plain';
  holder[KEY] ??= new Map();
  const clusters = holder[KEY];
  const shared = clusters.get(kind) ?? { cluster: start(node), users: 0 };
  clusters.set(kind, shared);
  shared.users++;
  const cluster = await shared.cluster;
  project.provide('cluster', cluster.info);
  return async () => {
    shared.users--;
    if (shared.users > 0) return;
    clusters.delete(kind);
    await cluster.stop();
  };
}
