import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterInfo, NodeInfo } from '../support/cluster-info.ts';
import type { NodeNetwork } from './node/network.ts';
import { PORT_TAKEN, Ports } from './ports.ts';
import { Processes } from './processes.ts';

/** What installing needs: a way to tell the person what is going on, and what that person gave. */
export interface Host {
  /** One line for the person who waits. */
  say(line: string): void;
  /** A kubeconfig to use instead of starting an API server. */
  kubeconfig: string | undefined;
  /** Folder with `etcd` and `kube-apiserver` to use instead of building them. */
  assets: string | undefined;
  /** True when the run gets a node that pods run on. */
  node: boolean;
}

/** One run: its directory, programs, ports, and the facts that components learn about each other. */
export class Run {
  readonly host: Host;
  readonly dir: string;
  readonly processes: Processes;
  readonly ports = new Ports(() => this.address);
  readonly facts: Partial<ClusterInfo> = {};
  /** Path of each installed program by its name. */
  readonly programs = new Map<string, string>();
  /** `http://127.0.0.1:<port>` of etcd. */
  etcd = '';
  /** Addresses of the node and its pods; undefined without a node. */
  network: NodeNetwork | undefined;
  /** What the components of a node learn about each other. */
  readonly node: Partial<Pick<NodeInfo, 'registry' | 'baseRegistry' | 'images'>> & {
    /** Pid of the node's first process, as seen from here. */
    firstPid?: number;
    /** Image of the first process of every pod. */
    pauseImage?: string;
  } = {};

  constructor(dir: string, host: Host) {
    this.dir = dir;
    this.host = host;
    this.processes = new Processes(dir);
  }

  /** The address that the services of this run listen on: the loopback one, or with a node the one that pods reach too. */
  get address(): string {
    return this.network?.hostAddress ?? '127.0.0.1';
  }

  path(...parts: string[]): string {
    return join(this.dir, ...parts);
  }

  program(name: string): string {
    const path = this.programs.get(name);
    if (!path) throw new Error(`the program ${name} was not installed`);
    return path;
  }
}

/** One real part of the test cluster. Its place in the list of `components/index.ts` decides when it is stopped. */
export interface Component {
  readonly name: string;
  /** Components that must be ready before this one starts. */
  readonly needs: readonly string[];
  /** Builds or installs what is missing on this machine; says what it does when that takes a while. */
  ensureInstalled(run: Run, signal: AbortSignal): Promise<void>;
  /** Starts it on ports of its own and adds to `run.facts`. */
  start(run: Run, signal: AbortSignal): Promise<void>;
  /** True once it answers; asked again and again until then. */
  ready(run: Run, signal: AbortSignal): Promise<boolean>;
  /** Ends it; a component that is not running is no error. */
  stop(run: Run): Promise<void>;
}

const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 50;
const PORT_ATTEMPTS = 5;

/** Waits until the component answers; throws with its log when it ended or takes too long. */
export async function waitReady(component: Component, run: Run, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  let last: unknown = 'it gave no answer';
  while (performance.now() < deadline) {
    signal.throwIfAborted();
    for (const name of run.processes.names()) if (name === component.name) run.processes.assertRunning(name);
    try {
      if (await component.ready(run, signal)) return;
    } catch (error) {
      last = error;
    }
    await delay(POLL_MS, undefined, { signal });
  }
  const log = run.processes.names().includes(component.name) ? `\n${run.processes.logTail(component.name)}` : '';
  throw new Error(`${component.name} was not ready within ${READY_TIMEOUT_MS / 1000} s: ${last}${log}`);
}

async function bringUp(component: Component, run: Run, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await component.start(run, signal);
      await waitReady(component, run, signal);
      return;
    } catch (error) {
      await component.stop(run);
      signal.throwIfAborted();
      if (attempt === PORT_ATTEMPTS || !PORT_TAKEN.test(String(error))) throw error;
      run.host.say(`${component.name}: its port was taken meanwhile, another one is tried`);
    }
  }
}

/** Starts the components, each as soon as those it needs are ready; the first failure ends the others. */
export async function startAll(components: readonly Component[], run: Run, signal: AbortSignal): Promise<void> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const ready = new Map<string, Promise<void>>();
  for (const component of components) {
    const before = component.needs.map((name) => ready.get(name));
    const up = (async () => {
      await Promise.all(before);
      await bringUp(component, run, either);
    })();
    ready.set(component.name, up);
  }
  const all = [...ready.values()];
  try {
    await Promise.all(all);
    for (const name of run.processes.names()) run.processes.assertRunning(name);
  } catch (error) {
    failed.abort(error);
    await Promise.allSettled(all);
    throw error;
  }
}
