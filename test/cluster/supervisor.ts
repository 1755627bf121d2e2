/**
 * The process that owns one run. It lives and dies with its standard input: as long as the pipe from `startCluster` is open it keeps the
 * components running, and when the pipe closes (the starter stopped, crashed or was killed) it ends them and removes the run directory.
 * Requests come in and reports go out as JSON lines.
 */
import { createInterface } from 'node:readline';
import type { ClusterInfo, NodeInfo } from '../support/cluster-info.ts';
import { type Component, Run, startAll, waitReady } from './component.ts';
import { componentsFor } from './components/index.ts';
import { NODE_NAME } from './node/accounts.ts';
import { nodeObstacle } from './node/obstacle.ts';
import { createRunDir, removeRun, sweep } from './run-dir.ts';

/** What is asked for: a cluster to use, a folder of programs, a node. */
interface Settings {
  kubeconfig?: string;
  assets?: string;
  node?: boolean;
}

/** A line from the starter. */
export type Order = { settings: Settings } | { restart: string } | { detach: true };

/** A line to the starter. */
export type Report =
  | { say: string }
  | { info: ClusterInfo }
  | { error: string }
  | { restarted: string }
  | { detached: number };

const tell = (report: Report): void => {
  process.stdout.write(`${JSON.stringify(report)}\n`);
};

function nodeInfo({ network, node }: Run): NodeInfo {
  const { registry, baseRegistry, images } = node;
  if (!network || !registry || !baseRegistry || !images)
    throw new Error('a component of the node did not tell its facts');
  const { nodeAddress: address, hostAddress, podRange, serviceRange, dnsAddress } = network;
  return { name: NODE_NAME, address, hostAddress, podRange, serviceRange, dnsAddress, registry, baseRegistry, images };
}

async function bringUp(run: Run, components: readonly Component[], signal: AbortSignal): Promise<ClusterInfo> {
  // One after the other: two package managers at once would only wait for each other.
  for (const component of components) await component.ensureInstalled(run, signal);
  await startAll(components, run, signal);
  const { kubeconfig, auditLog, s3, git } = run.facts;
  if (!kubeconfig || !s3 || !git) throw new Error('a component did not tell its address');
  const node = run.host.node ? { node: nodeInfo(run) } : {};
  return { runDir: run.dir, kubeconfig, ...(auditLog === undefined ? {} : { auditLog }), s3, git, ...node };
}

async function restart(run: Run, components: readonly Component[], name: string, signal: AbortSignal): Promise<void> {
  const component = components.find((candidate) => candidate.name === name);
  if (!component) throw new Error(`no component ${name}; there are ${components.map((c) => c.name).join(', ')}`);
  await run.processes.restart(name);
  await waitReady(component, run, signal);
}

async function tearDown(run: Run, components: readonly Component[]): Promise<void> {
  for (const component of components.toReversed()) await component.stop(run);
  await run.processes.stopAll();
  run.ports.release();
  await removeRun(run.dir);
}

async function main(): Promise<void> {
  const ending = new AbortController();
  const end = () => ending.abort(new Error('the run ends'));
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, end);
  // The starter may be gone; what cannot be told is not worth a crash.
  process.stdout.on('error', () => undefined);

  let detached = false;
  const orders = createInterface({ input: process.stdin });
  const { promise: settings, resolve: settle } = Promise.withResolvers<Settings>();
  let onRestart: (name: string) => Promise<void> = async () => undefined;
  orders.on('line', (line) => {
    const order = JSON.parse(line) as Order;
    if ('settings' in order) settle(order.settings);
    else if ('detach' in order) {
      detached = true;
      tell({ detached: process.pid });
    } else {
      onRestart(order.restart)
        .then(() => tell({ restarted: order.restart }))
        .catch((error: unknown) => tell({ error: String(error) }));
    }
  });
  orders.on('close', () => {
    if (!detached) end();
  });

  const { kubeconfig, assets, node = false } = await settings;
  const host = { say: (say: string) => tell({ say }), kubeconfig, assets, node };
  const swept = await sweep();
  if (swept.length > 0) host.say(`removed what ${swept.length} killed run(s) left behind`);
  const why = node ? await nodeObstacle(host, ending.signal) : undefined;
  if (why !== undefined) {
    tell({ error: `No node can run here: ${why}.` });
    return;
  }
  const components = componentsFor(host);
  const run = new Run(createRunDir(), host);
  const { promise: ended, resolve: finish } = Promise.withResolvers<void>();
  try {
    const info = await bringUp(run, components, ending.signal);
    onRestart = (name) => restart(run, components, name, ending.signal);
    if (ending.signal.aborted) finish();
    ending.signal.addEventListener('abort', () => finish());
    tell({ info });
    await ended;
  } catch (error) {
    tell({ error: error instanceof Error ? error.message : String(error) });
    process.exitCode = 1;
  } finally {
    await tearDown(run, components);
  }
}

await main();
// A detached run has no starter that waits; open pipes must not keep the process.
process.exit();
