import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import packageJson from '../package.json' with { type: 'json' };
import { buildSettings, enginesOf, gitAuthorities, registryOf } from './adapters.ts';
import { systemClock as clock } from './base/clock.ts';
import type { Logger } from './base/log.ts';
import { LoopWatch } from './base/loop-watch.ts';
import { createMetrics } from './base/metrics.ts';
import type { Observe } from './base/observe.ts';
import { WorkerPool } from './base/pool.ts';
import type { Config } from './config.ts';
import type { ByoOptions } from './controllers/byo/setup.ts';
import { installationId } from './controllers/installation.ts';
import { Manager } from './controllers/manager.ts';
import { observedEngine } from './engine/observed.ts';
import { loadKubeConfig } from './kube/connection.ts';
import { LeaderElection } from './kube/leader.ts';
import { KubeClient } from './kube/rest.ts';
import { GitTreeSource } from './marketplace/tree-source.ts';
import { serveProbes } from './probes.ts';
import { keySpace } from './store/keys.ts';
import { PackageStore } from './store/packages.ts';
import { S3ObjectStore } from './store/s3.ts';
import { measured, tracing } from './telemetry.ts';
import { WebhookReceiver } from './webhook/receiver.ts';
import { tasks } from './worker.ts';

const MIB = 1024 * 1024;
const HOUR_MS = 3_600_000;

/** The worker module beside this one: a source file, or in a bundle the second bundle. */
const WORKER = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url);

/** The Lease of one shard: those that work on other sources do not compete for it. */
function leaseName(shardSelector: string | undefined): string {
  if (shardSelector === undefined) return 'skill-operator';
  return `skill-operator-shard-${createHash('sha256').update(shardSelector).digest('hex').slice(0, 10)}`;
}

/** One process of the operator: adapters from the settings, probes, the lease, and the controllers while it leads. */
class Operator {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #metrics = createMetrics();
  readonly #tracing: ReturnType<typeof tracing>;
  readonly #observe: Observe;
  readonly #leader: LeaderElection | undefined;
  readonly #identity = `${hostname()}-${randomUUID().slice(0, 8)}`;
  readonly #loop = new LoopWatch(clock);
  /** The API server has answered once: address, certificate and account are right. */
  #reached = false;
  #manager: Manager | undefined;
  #store: S3ObjectStore | undefined;
  #receiver: WebhookReceiver | undefined;

  constructor(config: Config, log: Logger) {
    this.#config = config;
    this.#log = log;
    const parts = {
      version: packageJson.version,
      identity: this.#identity,
      metrics: this.#metrics,
      clock,
      logger: log,
    };
    this.#tracing = tracing(config, parts);
    this.#observe = measured(this.#metrics, clock, this.#tracing.tracer);
    if (!config.leaderElection) return;
    this.#leader = new LeaderElection({
      // Of its own and without the fence: renewals must not queue behind the controllers' calls.
      api: this.#client('leader'),
      namespace: config.operatorNamespace,
      name: leaseName(config.shardSelector),
      identity: this.#identity,
      clock,
      logger: log,
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    await using _probes = await this.#probes();
    await using _receiver = await this.#receiveWebhooks();
    const lead = (inner: AbortSignal) => this.#lead(inner);
    try {
      await (this.#leader ? this.#leader.run(signal, lead) : lead(signal));
    } finally {
      await this.#tracing.close();
    }
  }

  async #probes(): Promise<AsyncDisposable | undefined> {
    if (!this.#config.metricsAddress) return undefined;
    const { port, close } = await serveProbes(this.#config.metricsAddress, {
      alive: () => this.#loop.alive && (this.#manager?.alive ?? true) && (this.#receiver?.alive ?? true),
      ready: () => this.#reached && (this.#receiver?.ready ?? true),
      metrics: () => this.#measured(),
    });
    this.#log.info({ port }, 'serving /metrics, /healthz and /readyz');
    this.#loop.start();
    const stop = () => {
      this.#loop.stop();
      return close();
    };
    return { [Symbol.asyncDispose]: stop };
  }

  /** The metrics, those that are read rather than counted brought up to date. */
  #measured(): Promise<string> {
    const metrics = this.#metrics;
    this.#manager?.measure();
    if (this.#store) metrics.totals('skill_operator_store_requests_total', 'operation', this.#store.requests);
    const name = leaseName(this.#config.shardSelector);
    if (this.#leader) metrics.set('leader_election_master_status', { name }, this.#leader.isLeader() ? 1 : 0);
    return metrics.render();
  }

  /** On every replica, with a client of its own: a flood must not queue before the controllers' calls. */
  async #receiveWebhooks(): Promise<AsyncDisposable | undefined> {
    const { webhookAddress: address } = this.#config;
    if (!address) return undefined;
    // Of every shard: the leader of the source's own sees what is written.
    const scope = { namespaces: this.#config.watchNamespaces };
    const shared = { scope, clock, logger: this.#log, metrics: this.#metrics };
    const receiver = new WebhookReceiver({ address, api: this.#client('webhook'), ...shared });
    this.#receiver = receiver;
    await receiver.start();
    return receiver;
  }

  #client(component: string, fence?: () => void): KubeClient {
    return new KubeClient({
      load: () => loadKubeConfig(),
      version: packageJson.version,
      component,
      clock,
      observe: ({ verb, code, seconds, resource }) => {
        // 404: there is no Lease yet, and the account may look for one.
        this.#reached ||= (code >= 200 && code < 300) || code === 404;
        this.#metrics.add('rest_client_requests_total', { method: verb, code: String(code) });
        this.#metrics.observe('rest_client_request_duration_seconds', { verb }, seconds);
        const failed = code === 0 || code >= 400 ? String(code) : undefined;
        this.#tracing.tracer.record(`kube ${verb}`, { resource, code }, seconds, failed);
      },
      // Two resources per namespace and the Jobs, and as many again while a credential changes.
      watches: Math.max(16, 4 * (this.#config.watchNamespaces?.length ?? 1) + 2),
      ...(fence ? { fence } : {}),
    });
  }

  /** All the work of the leader; ends when `signal` aborts. */
  async #lead(signal: AbortSignal): Promise<void> {
    const config = this.#config;
    const leader = this.#leader;
    const api = this.#client('controller', leader && (() => leader.check()));
    const installation = config.installation ?? (await installationId(api, config.operatorNamespace, signal));
    const store = this.#objectStore();
    const space = keySpace(config.store.prefix, installation);
    const packages = new PackageStore(store, space);
    const engines = this.#engines(api);
    const { graceHours, intervalHours, enabled } = config.sweep;
    const trees = new GitTreeSource({
      dir: config.mirrorDir,
      clock,
      log: this.#log,
      limits: { diskBytes: config.mirrorDiskMiB * MIB },
      proxies: config.git.proxy,
      authorities: gitAuthorities(),
      observe: this.#observe,
    });
    const compute = new WorkerPool({ tasks, worker: WORKER, threads: config.computeWorkers });
    try {
      this.#manager = new Manager({
        api,
        packages,
        byo: this.#byo(api, installation, store, engines),
        store,
        space,
        operatorNamespace: config.operatorNamespace,
        engines: Object.fromEntries(Object.entries(engines).map(([name, { engine }]) => [name, engine])),
        upkeep: { sweep: enabled, graceMs: graceHours * HOUR_MS, intervalMs: intervalHours * HOUR_MS },
        trees,
        compute,
        settings: { tier1: config.tier1 },
        scope: { namespaces: config.watchNamespaces, labelSelector: config.shardSelector },
        webhooks: config.webhookAddress !== '',
        workers: { source: config.sourceWorkers, skill: config.skillWorkers },
        gitHosts: config.git,
        identity: this.#identity,
        clock,
        logger: this.#log,
        metrics: this.#metrics,
        tracer: this.#tracing.tracer,
      });
      this.#log.info({ installation, identity: this.#identity }, 'working');
      await this.#manager.run(signal);
    } finally {
      await Promise.all([trees.close(), compute.close(), store.close()]);
    }
  }

  #objectStore(): S3ObjectStore {
    const { caFile, prefix: _prefix, ...settings } = this.#config.store;
    this.#store = new S3ObjectStore(
      { ...settings, ...(caFile ? { ca: readFileSync(caFile, 'utf8') } : {}) },
      clock,
      this.#observe,
    );
    return this.#store;
  }

  /** The engines that the settings name; without builds they only answer for platform templates. */
  #engines(api: KubeClient): ByoOptions['engines'] {
    const { build, engines, operatorNamespace: namespace } = this.#config;
    const setups = enginesOf(engines, build?.registry.host ?? '', { api, namespace, clock });
    return Object.fromEntries(
      Object.entries(setups).map(([name, setup]) => [
        name,
        { ...setup, engine: observedEngine(setup.engine, this.#observe) },
      ]),
    );
  }

  /** Builds and engines, where the settings name them. */
  #byo(
    api: KubeClient,
    installation: string,
    store: S3ObjectStore,
    engines: ByoOptions['engines'],
  ): ByoOptions | undefined {
    const { build, operatorNamespace, store: s3 } = this.#config;
    if (!build) return undefined;
    const home = { api, namespace: operatorNamespace, clock };
    return {
      settings: buildSettings(build, installation),
      registry: registryOf(build, home),
      engines,
      store,
      space: keySpace(s3.prefix, installation),
      operatorNamespace,
      allowAnonymousWrites: build.allowAnonymousWrites,
    };
  }
}

/** Runs the operator until `signal` aborts; rejects when it cannot go on (the lease is lost, the API refuses it). */
export async function runOperator(config: Config, log: Logger, signal: AbortSignal): Promise<void> {
  await new Operator(config, log).run(signal);
}
