import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ClusterInfo } from '../support/cluster-info.ts';
import { nodeObstacle } from './node/obstacle.ts';
import type { Order, Report } from './supervisor.ts';

/** How to start a cluster; everything is optional. */
export interface StartOptions {
  /** Gets one line for every step that takes a while. Default: nothing is told. */
  say?: (line: string) => void;
  /** Kubeconfig of a cluster to use for the API. Default: TEST_KUBECONFIG, else KUBECONFIG, else one is started. Empty: one is started. */
  kubeconfig?: string;
  /** Folder with etcd and kube-apiserver. Default: KUBEBUILDER_ASSETS, else they are compiled once per machine. */
  assets?: string;
  /** Start a node as well (root on Linux only), so that pods run. Default: none. */
  node?: boolean;
  signal?: AbortSignal;
}

/** A running test cluster. */
export interface Cluster {
  info: ClusterInfo;
  /** Pid of the process that owns the run and ends with this one. */
  ownerPid: number;
  /** Kills one component (`kube-apiserver`, `etcd`, `s3`, …) and starts it again on the same port; resolves when it answers. */
  restart(component: string): Promise<void>;
  /** Leaves the cluster up when this process ends; `kill <the returned pid>` stops it. */
  detach(): Promise<number>;
  /** Ends every component and removes the run directory. May be called twice. */
  stop(): Promise<void>;
}

const SUPERVISOR = fileURLToPath(new URL('./supervisor.ts', import.meta.url));

const END_TIMEOUT_MS = 30_000;

/** The line protocol with the supervisor, seen from the starter. */
class Supervisor {
  readonly child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #waiting: {
    wants: (report: Report) => boolean;
    resolve: (r: Report) => void;
    reject: (e: Error) => void;
  }[] = [];

  constructor(say: (line: string) => void) {
    // A session of its own: Ctrl-C reaches the starter alone, which then ends the run in order.
    this.child = spawn(process.execPath, [SUPERVISOR], { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
    this.#ended = once(this.child, 'exit').catch((error: unknown) => error);
    this.child.stdin?.on('error', () => undefined);
    if (this.child.stdout) {
      createInterface({ input: this.child.stdout }).on('line', (line) => this.#take(JSON.parse(line) as Report, say));
    }
    this.#ended.then(() => this.#fail('the test cluster ended unexpectedly')).catch(() => undefined);
  }

  #take(report: Report, say: (line: string) => void): void {
    if ('say' in report) say(report.say);
    else if ('error' in report) this.#fail(report.error);
    else {
      const index = this.#waiting.findIndex(({ wants }) => wants(report));
      this.#waiting.splice(index, index < 0 ? 0 : 1)[0]?.resolve(report);
    }
  }

  #fail(message: string): void {
    for (const { reject } of this.#waiting.splice(0)) reject(new Error(message));
  }

  async ask<T extends Report>(order: Order, wants: (report: Report) => report is T): Promise<T> {
    if (this.child.exitCode !== null) throw new Error('the test cluster has ended');
    const { promise, resolve, reject } = Promise.withResolvers<Report>();
    this.#waiting.push({ wants, resolve, reject });
    this.child.stdin?.write(`${JSON.stringify(order)}\n`);
    return (await promise) as T;
  }

  async end(): Promise<void> {
    this.child.stdin?.end();
    // Should it hang, its run directory is swept by the next start.
    const timer = setTimeout(() => this.child.kill('SIGKILL'), END_TIMEOUT_MS);
    await this.#ended;
    clearTimeout(timer);
  }

  release(): void {
    this.child.unref();
    this.child.stdin?.end();
    this.child.stdout?.destroy();
  }
}

const given = (...values: (string | undefined)[]): string | undefined =>
  values.find((value) => value !== undefined && value !== '');

/** What the person gave to use instead of starting or compiling it. */
const givenParts = (options: StartOptions) => ({
  kubeconfig: options.kubeconfig ?? given(process.env.TEST_KUBECONFIG, process.env.KUBECONFIG),
  assets: options.assets ?? given(process.env.KUBEBUILDER_ASSETS),
});

/** Why `startCluster` with these options and `node: true` would refuse; undefined when it would not. */
export async function whyNoNode(options: StartOptions = {}): Promise<string | undefined> {
  return await nodeObstacle(givenParts(options), options.signal ?? new AbortController().signal);
}

/**
 * Starts a real API server with its store and controller manager, S3, and Git over http, https and ssh, on free loopback ports.
 * With a node the same, and what pods need, on an address that pods reach too.
 * Resolves when all of them answer. When this process ends in whatever way, so does the cluster.
 */
export async function startCluster(options: StartOptions = {}): Promise<Cluster> {
  options.signal?.throwIfAborted();
  const { kubeconfig, assets } = givenParts(options);
  const supervisor = new Supervisor(options.say ?? (() => undefined));
  const onAbort = () => void supervisor.end();
  options.signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const { info } = await supervisor.ask(
      {
        settings: { ...(kubeconfig ? { kubeconfig } : {}), ...(assets ? { assets } : {}), node: options.node ?? false },
      },
      (report): report is { info: ClusterInfo } => 'info' in report,
    );
    return {
      info,
      ownerPid: supervisor.child.pid ?? -1,
      restart: async (component) => {
        await supervisor.ask(
          { restart: component },
          (report): report is { restarted: string } => 'restarted' in report && report.restarted === component,
        );
      },
      detach: async () => {
        const { detached } = await supervisor.ask(
          { detach: true },
          (report): report is { detached: number } => 'detached' in report,
        );
        supervisor.release();
        return detached;
      },
      stop: () => supervisor.end(),
    };
  } catch (error) {
    await supervisor.end();
    options.signal?.throwIfAborted();
    throw error;
  } finally {
    options.signal?.removeEventListener('abort', onAbort);
  }
}
