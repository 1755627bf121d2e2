/**
 * The process that owns one run. It lives and dies with its standard input: as long as the pipe from `startCluster` is open it keeps the
 * components running, and when the pipe closes (the starter stopped, crashed or was killed) it ends them and removes the run directory.
 * Requests come in and reports go out as JSON lines.
 */
import { createInterface } from 'node:readline';
import type { ClusterInfo } from '../support/cluster-info.ts';
import { type Component, Run, startAll, waitReady } from './component.ts';
import { componentsFor } from './components/index.ts';
import { createRunDir, removeRun, sweep } from './run-dir.ts';

/** A line from the starter. */
export type Order = { settings: { kubeconfig?: string; assets?: string } } | { restart: string } | { detach: true };

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

async function bringUp(run: Run, components: readonly Component[], signal: AbortSignal): Promise<ClusterInfo> {
  // One after the other: two package managers at once would only wait for each other.
  for (const component of components) await component.ensureInstalled(run, signal);
  await startAll(components, run, signal);
  const { kubeconfig, auditLog, s3, git } = run.facts;
  if (!kubeconfig || !s3 || !git) throw new Error('a component did not tell its address');
  return { runDir: run.dir, kubeconfig, ...(auditLog === undefined ? {} : { auditLog }), s3, git };
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
  removeRun(run.dir);
}

async function main(): Promise<void> {
  const ending = new AbortController();
  const end = () => ending.abort(new Error('the run ends'));
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, end);
  // The starter may be gone; what cannot be told is not worth a crash.
  process.stdout.on('error', () => undefined);

  let detached = false;
  const orders = createInterface({ input: process.stdin });
  const { promise: settings, resolve: settle } = Promise.withResolvers<{ kubeconfig?: string; assets?: string }>();
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

  const { kubeconfig, assets } = await settings;
  const host = { say: (say: string) => tell({ say }), kubeconfig, assets };
  const swept = sweep();
  if (swept.length > 0) host.say(`removed what ${swept.length} killed run(s) left behind`);
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
