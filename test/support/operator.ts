import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ClusterInfo } from './cluster-info.ts';
import { eventually } from './eventually.ts';
import { K8s, type Ref } from './k8s.ts';
import { createOperatorAccount, installCrds, type OperatorAccount } from './operator-account.ts';
import { type LogLine, Run, WatchedK8s } from './operator-run.ts';
import { makeBucket } from './s3.ts';
import { parseSamples, type Samples } from './samples.ts';

/** How to start an operator; everything is optional. */
export interface OperatorOptions {
  /** Existing bucket; default: one of its own. */
  bucket?: string;
  /** Environment variables on top of those that the harness sets. */
  env?: Record<string, string>;
  /** Flags on top of those that the harness sets; they win. */
  args?: string[];
  /** ServiceAccount and operator namespace; default: new ones. Operators of one account compete for one lease. */
  account?: OperatorAccount;
  /** Namespace to watch; default: one made for this operator. */
  namespace?: string;
  /** Watch every namespace; `namespace` is then only the one that the builders use. */
  watchAll?: boolean;
  /** `sync` (default): return once the caches are filled; `started`: once the probes are served (a standby never leads). */
  until?: 'sync' | 'started';
  /** Program to run instead of src/main.ts, such as a bundle. */
  main?: string;
}

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const START_MS = 60_000;

/** An operator in a process of its own, and a test's hands on what it works with. */
export class Operator implements AsyncDisposable {
  readonly info: ClusterInfo;
  /** Namespace of the test's objects. */
  readonly namespace: string;
  readonly bucket: string;
  readonly account: OperatorAccount;
  /** With cluster-admin; its waits fail at once when the operator dies. */
  readonly k8s: K8s;
  readonly #options: OperatorOptions;
  readonly #mirrorDir: string;
  #run: Run | undefined;

  /** Use `startOperator`. */
  constructor(
    info: ClusterInfo,
    options: OperatorOptions,
    made: { namespace: string; bucket: string; account: OperatorAccount; mirrorDir: string },
  ) {
    this.info = info;
    this.#options = options;
    this.namespace = made.namespace;
    this.bucket = made.bucket;
    this.account = made.account;
    this.#mirrorDir = made.mirrorDir;
    const forever = new Promise<never>(() => undefined);
    this.k8s = new WatchedK8s(info.kubeconfig, () => this.#run?.died ?? forever);
  }

  /** Process id of the current run. */
  get pid(): number {
    return this.#current.child.pid ?? -1;
  }

  get #current(): Run {
    if (!this.#run) throw new Error('the operator does not run; call start()');
    return this.#run;
  }

  /** Starts the program again after `stop` or `kill`; `over` changes environment and flags for this run. */
  async start(over: Pick<OperatorOptions, 'env' | 'args' | 'until'> = {}): Promise<void> {
    if (this.#run && !this.#run.expected) throw new Error('the operator runs already');
    const { args, env } = this.#command(over);
    this.#run = new Run(args, env);
    const until = over.until ?? this.#options.until ?? 'sync';
    await this.waitForLog(until === 'sync' ? 'caches are in sync' : 'serving /metrics', START_MS);
  }

  #command(over: Pick<OperatorOptions, 'env' | 'args'>): { args: string[]; env: Record<string, string> } {
    const { s3 } = this.info;
    const { main = MAIN, watchAll } = this.#options;
    const flags = [
      ...['--store-endpoint', s3.endpoint, '--store-region', s3.region, '--store-bucket', this.bucket],
      ...['--operator-namespace', this.account.namespace, '--mirror-dir', this.#mirrorDir],
      ...['--metrics-address', '127.0.0.1:0'],
      ...(watchAll ? [] : ['--watch-namespaces', this.namespace]),
    ];
    return {
      args: [main, ...flags, ...(this.#options.args ?? []), ...(over.args ?? [])],
      env: {
        PATH: process.env.PATH ?? '',
        HOME: this.#mirrorDir,
        KUBECONFIG: this.account.kubeconfig,
        SKILL_OPERATOR_STORE_ACCESS_KEY: s3.accessKey,
        SKILL_OPERATOR_STORE_SECRET_KEY: s3.secretKey,
        ...this.#options.env,
        ...over.env,
      },
    };
  }

  /** False before the first start, and after `stop`, `kill` or a death of its own. */
  get isRunning(): boolean {
    const { child, expected } = this.#run ?? {};
    return child !== undefined && !expected && child.exitCode === null && child.signalCode === null;
  }

  /** The log of the current run. */
  logs(): LogLine[] {
    return [...this.#current.lines];
  }

  /** The first line of the current run whose message begins with `text`; waits for it. */
  async waitForLog(text: string, timeoutMs = 20_000): Promise<LogLine> {
    const run = this.#current;
    const find = () => run.lines.find((line) => line.msg?.startsWith(text));
    const wait = eventually(find, { timeoutMs, what: `the log line "${text}"` }).catch((error: Error) => {
      throw new Error(`${error.message}; the operator's last lines:\n${run.tail()}`);
    });
    return await Promise.race([wait, run.died]);
  }

  /** `http://127.0.0.1:<port>` of /metrics, /healthz and /readyz. */
  async address(): Promise<string> {
    const { port } = await this.waitForLog('serving /metrics');
    return `http://127.0.0.1:${port}`;
  }

  /** The current values of all metrics. */
  async metrics(): Promise<Samples> {
    const response = await fetch(`${await this.address()}/metrics`, { signal: AbortSignal.timeout(10_000) });
    return parseSamples(await response.text());
  }

  /** Throws with the log's tail when the operator died by itself; for afterEach. */
  async check(): Promise<void> {
    const alive = Promise.resolve();
    await Promise.race([this.#run?.died ?? alive, alive]);
  }

  /** SIGTERM; rejects with the log's tail unless the program ends with 0 in time. */
  async stop(): Promise<void> {
    const run = this.#current;
    await this.check();
    const code = await run.end('SIGTERM');
    if (code !== 0) throw new Error(`the operator ended with ${code} after SIGTERM; its last lines:\n${run.tail()}`);
  }

  /** SIGKILL; its lease stays taken until it runs out. */
  async kill(): Promise<void> {
    await this.#current.end('SIGKILL');
  }

  /** `stop`, then `start`. */
  async restart(over: Pick<OperatorOptions, 'env' | 'args' | 'until'> = {}): Promise<void> {
    await this.stop();
    await this.start(over);
  }

  /** Reference of a MarketplaceSource in the namespace. */
  source(name: string): Ref {
    return { apiVersion: 'skills.tfrobot.io/v1alpha1', kind: 'MarketplaceSource', name, namespace: this.namespace };
  }

  /** Reference of a Skill in the namespace, by object name. */
  skill(name: string): Ref {
    return { apiVersion: 'skills.tfrobot.io/v1alpha1', kind: 'Skill', name, namespace: this.namespace };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (this.#run && !this.#run.expected) await this.stop();
    } finally {
      this.#run?.child.kill('SIGKILL');
      await this.k8s[Symbol.asyncDispose]();
      await rm(this.#mirrorDir, { recursive: true, force: true });
    }
  }
}

/**
 * Runs the operator as a child process under the ServiceAccount that the chart ships, with a bucket, a mirror directory and a watched
 * namespace of its own, leader election on. Resolves once its caches are filled. Dispose it (`await using`, or in afterAll).
 */
export async function startOperator(info: ClusterInfo, options: OperatorOptions = {}): Promise<Operator> {
  if (Number(process.versions.node.split('.')[0]) < 24) throw new Error('run the tests with Node 24: make test');
  await installCrds(info);
  await using k8s = new K8s(info.kubeconfig);
  const [account, namespace, bucket, mirrorDir] = await Promise.all([
    options.account ?? createOperatorAccount(info),
    options.namespace ?? k8s.createNamespace('market'),
    options.bucket ?? makeBucket(info.s3, 'operator'),
    mkdtemp(join(tmpdir(), 'skill-operator-mirror-')),
  ]);
  const operator = new Operator(info, options, { account, namespace, bucket, mirrorDir });
  try {
    await operator.start();
    return operator;
  } catch (error) {
    await operator[Symbol.asyncDispose]().catch(() => undefined);
    throw error;
  }
}
