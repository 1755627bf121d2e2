import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import packageJson from '../package.json' with { type: 'json' };
import { ANNOTATIONS } from './api/labels.ts';
import type { MarketplaceSource } from './api/marketplacesource.ts';
import { MARKETPLACE_SOURCES, SKILLS } from './api/resources.ts';
import type { Skill } from './api/skill.ts';
import { systemClock as clock } from './base/clock.ts';
import type { Logger } from './base/log.ts';
import { createMetrics } from './base/metrics.ts';
import { WorkerPool } from './base/pool.ts';
import type { Config } from './config.ts';
import { CredentialReader } from './controllers/credentials.ts';
import { installationId } from './controllers/installation.ts';
import { BY_CONTROLLER, SourceController } from './controllers/marketplacesource/controller.ts';
import { CountsController } from './controllers/marketplacesource/counts.ts';
import { Remotes } from './controllers/remotes.ts';
import { SkillController } from './controllers/skill/controller.ts';
import { BY_NAME, nameFacts, nameKey } from './controllers/skill/names.ts';
import { trimSkill } from './controllers/skill/status.ts';
import { loadKubeConfig } from './kube/connection.ts';
import { Controller, type Outcome } from './kube/controller.ts';
import { EventRecorder } from './kube/events.ts';
import { LeaderElection } from './kube/leader.ts';
import { Reflector } from './kube/reflector.ts';
import { KubeClient } from './kube/rest.ts';
import { Cache, type Change } from './kube/store.ts';
import { type KubeObject, keyOf } from './kube/types.ts';
import { GitTreeSource } from './marketplace/tree-source.ts';
import { serveProbes } from './probes.ts';
import { keySpace } from './store/keys.ts';
import { PackageStore } from './store/packages.ts';
import { S3ObjectStore } from './store/s3.ts';
import { tasks } from './worker.ts';

const LEASE = 'skill-operator';
const MIB = 1024 * 1024;

/** The worker module beside this one: a source file, or in a bundle the second bundle. */
const WORKER = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url);

/** True when the change is one that a pass has to look at: not a status write. */
function isSignificant<T extends KubeObject>({ type, object, old }: Change<T>, annotations: string[]): boolean {
  if (type !== 'updated' || !old) return true;
  const [a, b] = [object.metadata, old.metadata];
  return (
    a.generation !== b.generation ||
    a.deletionTimestamp !== b.deletionTimestamp ||
    annotations.some((name) => a.annotations?.[name] !== b.annotations?.[name])
  );
}

/** Key of the source that controls the Skill. */
function sourceKeyOf(skill: Skill): string | undefined {
  const owner = skill.metadata.ownerReferences?.find((ref) => ref.controller && ref.kind === 'MarketplaceSource');
  return owner && `${skill.metadata.namespace}/${owner.name}`;
}

/** Everything that lives as long as the process, leader or not. */
class Operator {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #metrics = createMetrics();
  readonly #reflectors: { alive: boolean }[] = [];
  readonly #leader: LeaderElection | undefined;
  readonly #identity = `${hostname()}-${randomUUID().slice(0, 8)}`;

  constructor(config: Config, log: Logger) {
    this.#config = config;
    this.#log = log;
    if (config.leaderElection) {
      this.#leader = new LeaderElection({
        api: this.#client('leader', false),
        namespace: config.operatorNamespace,
        name: LEASE,
        identity: this.#identity,
        clock,
        logger: log,
      });
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    const probes = this.#config.metricsAddress
      ? await serveProbes(this.#config.metricsAddress, {
          alive: () => this.#reflectors.every((reflector) => reflector.alive),
          ready: () => true,
          metrics: () => this.#metrics.render(),
        })
      : undefined;
    if (probes) this.#log.info({ port: probes.port }, 'serving /metrics, /healthz and /readyz');
    try {
      const lead = (inner: AbortSignal) => this.#lead(inner);
      await (this.#leader ? this.#leader.run(signal, lead) : lead(signal));
    } finally {
      await probes?.close();
    }
  }

  #client(component: string, fenced: boolean): KubeClient {
    return new KubeClient({
      load: () => loadKubeConfig(),
      version: packageJson.version,
      component,
      clock,
      observe: ({ verb, code }) => this.#metrics.kubeRequest(verb, String(code)),
      ...(fenced && this.#leader ? { fence: () => this.#leader?.check() } : {}),
    });
  }

  /** All the work of the leader; ends when `signal` aborts. */
  async #lead(signal: AbortSignal): Promise<void> {
    const { config } = { config: this.#config };
    const api = this.#client('controller', true);
    const installation = config.installation ?? (await installationId(api, config.operatorNamespace, signal));
    const { caFile, ...settings } = config.store;
    const store = new S3ObjectStore({ ...settings, ...(caFile ? { ca: readFileSync(caFile, 'utf8') } : {}) });
    const packages = new PackageStore(store, keySpace(config.store.prefix, installation));
    const trees = new GitTreeSource({
      dir: config.mirrorDir,
      clock,
      log: this.#log,
      limits: { diskBytes: config.mirrorDiskMiB * MIB },
      count: (operation) => this.#metrics.gitRequest(operation),
    });
    const compute = new WorkerPool({ tasks, worker: WORKER, threads: config.computeWorkers });
    try {
      this.#log.info({ installation, identity: this.#identity }, 'leading');
      await this.#work(api, { packages, trees, compute }, signal);
    } finally {
      await Promise.all([trees.close(), compute.close()]);
    }
  }

  async #work(
    api: KubeClient,
    rooms: { packages: PackageStore; trees: GitTreeSource; compute: WorkerPool },
    signal: AbortSignal,
  ): Promise<void> {
    const logger = this.#log;
    const sources = new Cache<MarketplaceSource>({ clock });
    const skills = new Cache<Skill>({
      clock,
      indexes: {
        [BY_CONTROLLER]: (skill) =>
          skill.metadata.ownerReferences?.flatMap((ref) => (ref.controller ? [ref.uid] : [])) ?? [],
        [BY_NAME]: (skill) => [nameKey(skill)],
      },
    });
    const recorder = (controller: string) =>
      new EventRecorder({
        api,
        reportingController: `skills.tfrobot.io/${controller}`,
        reportingInstance: this.#identity,
        clock,
        logger,
      });
    const [sourceEvents, skillEvents] = [recorder('source-controller'), recorder('skill-controller')];
    const remotes = new Remotes(new CredentialReader(api, clock), rooms.trees);
    const shared = { api, sources, skills, remotes, clock };
    const source = new SourceController({ ...shared, trees: rooms.trees, events: sourceEvents });
    const counts = new CountsController(shared);
    const skill = new SkillController({
      ...shared,
      ...rooms,
      settings: { tier1: this.#config.tier1 },
      events: skillEvents,
      wake: (key) => skillQueue.add(key),
    });
    const scope = this.#config.watchNamespace ? { namespace: this.#config.watchNamespace } : {};
    const sourceReflector: Reflector<MarketplaceSource> = new Reflector({
      client: api,
      resource: MARKETPLACE_SOURCES,
      scope,
      cache: sources,
      logger,
      clock,
      onChange: (change) => {
        if (isSignificant(change, [ANNOTATIONS.requestedAt, ANNOTATIONS.allowPrune])) {
          sourceQueue.add(change.key, { priority: !change.initial });
          countsQueue.add(change.key);
        }
      },
    });
    const skillReflector: Reflector<Skill> = new Reflector({
      client: api,
      resource: SKILLS,
      scope,
      cache: skills,
      trim: trimSkill,
      logger,
      clock,
      onChange: (change) => {
        const { object, old, type, key, initial } = change;
        if (isSignificant(change, [ANNOTATIONS.requestedAt, ANNOTATIONS.rebuild])) {
          // What a person touched goes before the mass that a source brings.
          skillQueue.add(key, { priority: type === 'updated' });
        }
        if (type === 'deleted') skill.names.release(object);
        else skill.names.settle(object);
        const facts = type === 'deleted' ? nameFacts(undefined) : nameFacts(object);
        if (!initial && facts !== nameFacts(old)) {
          for (const peer of skill.names.peers(object)) skillQueue.add(keyOf(peer));
        }
        const owner = sourceKeyOf(object);
        if (owner) countsQueue.add(owner);
      },
    });
    this.#reflectors.push(sourceReflector, skillReflector);
    const options = (name: string) => ({
      name,
      clock,
      logger,
      observe: (outcome: Outcome, seconds: number) => this.#metrics.reconcile(name, outcome, seconds),
    });
    const settlesSource = {
      cache: sources,
      refresh: (key: string, s: AbortSignal) => sourceReflector.refresh(key, s),
    };
    const settlesSkill = { cache: skills, refresh: (key: string, s: AbortSignal) => skillReflector.refresh(key, s) };
    const sourceQueue: Controller = new Controller({
      ...options('marketplacesource'),
      workers: this.#config.sourceWorkers,
      reconcile: source.reconcile,
      intervalOf: source.intervalOf,
      settles: [settlesSource, settlesSkill],
    });
    const countsQueue: Controller = new Controller({
      ...options('counts'),
      workers: 2,
      reconcile: counts.reconcile,
      intervalOf: source.intervalOf,
      settles: [settlesSource],
    });
    const skillQueue: Controller = new Controller({
      ...options('skill'),
      workers: this.#config.skillWorkers,
      reconcile: skill.reconcile,
      intervalOf: skill.intervalOf,
      settles: [settlesSkill],
    });
    const watching = [sourceReflector.run(signal), skillReflector.run(signal)];
    await Promise.all([sourceReflector.whenSynced(signal), skillReflector.whenSynced(signal)]);
    logger.info({ sources: sources.size, skills: skills.size }, 'caches are in sync');
    await Promise.all([
      ...watching,
      sourceQueue.run(signal),
      countsQueue.run(signal),
      skillQueue.run(signal),
      sourceEvents.run(signal),
      skillEvents.run(signal),
    ]);
  }
}

/** Runs the operator until `signal` aborts; rejects when it cannot go on (the lease is lost, the API refuses it). */
export async function runOperator(config: Config, log: Logger, signal: AbortSignal): Promise<void> {
  await new Operator(config, log).run(signal);
}
