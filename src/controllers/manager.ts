import type { MarketplaceSource } from '../api/marketplacesource.ts';
import { labelValue } from '../api/names.ts';
import { JOBS, MARKETPLACE_SOURCES, SKILLS } from '../api/resources.ts';
import type { Skill } from '../api/skill.ts';
import type { Clock } from '../base/clock.ts';
import type { Compute } from '../base/compute.ts';
import { messageOf } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Tracer } from '../base/trace.ts';
import { BUILD_ANNOTATIONS, BUILD_LABELS } from '../build/names.ts';
import type { SandboxEngine } from '../engine/port.ts';
import { Controller, type ControllerOptions } from '../kube/controller.ts';
import { EventRecorder } from '../kube/events.ts';
import { Instruments } from '../kube/instruments.ts';
import { WorkQueue } from '../kube/queue.ts';
import { Reflector } from '../kube/reflector.ts';
import type { KubeClient } from '../kube/rest.ts';
import { Cache } from '../kube/store.ts';
import type { KubeObject, Reconcile } from '../kube/types.ts';
import { Watch, type WatchScope } from '../kube/watch.ts';
import { skillState } from '../lifecycle/source-summary.ts';
import type { TreeSource } from '../marketplace/port.ts';
import type { Engine } from '../protocol/types.ts';
import type { KeySpace } from '../store/keys.ts';
import type { PackageStore } from '../store/packages.ts';
import type { ObjectStore } from '../store/port.ts';
import { handsOff } from './byo/hands.ts';
import { Ledger } from './byo/ledger.ts';
import { REGISTERING, registeringAt } from './byo/registrations.ts';
import { type Byo, type ByoOptions, byoHands } from './byo/setup.ts';
import { BUILDING, isBuilding } from './byo/slots.ts';
import { onSkillChange, onSourceChange } from './changes.ts';
import { CredentialReader, ProxyReader } from './credentials.ts';
import { GitHosts, type HostLimits } from './githosts.ts';
import { Health } from './health.ts';
import { BY_CONTROLLER, SourceController } from './marketplacesource/controller.ts';
import { CountsController } from './marketplacesource/counts.ts';
import { type Shard, shardOf } from './marketplacesource/shard.ts';
import { measureObjects, STATE, sourceState } from './measures.ts';
import { Pins } from './pins.ts';
import { Remotes } from './remotes.ts';
import { SkillController } from './skill/controller.ts';
import { BY_NAME, nameKey } from './skill/names.ts';
import type { SkillSettings } from './skill/settings.ts';
import { trimSkill } from './skill/status.ts';
import { Upkeep } from './sweep/upkeep.ts';

/** The adapters and settings that the controllers run on. */
export interface ManagerOptions {
  api: KubeClient;
  packages: PackageStore;
  trees: TreeSource;
  compute: Compute;
  /** Builds and engines; absent: skills that bring their own image wait. */
  byo?: ByoOptions | undefined;
  /** Bucket and key space for heal and sweep. */
  store: ObjectStore;
  space: KeySpace;
  operatorNamespace: string;
  engines: Readonly<Partial<Record<Engine, SandboxEngine>>>;
  upkeep: { sweep: boolean; graceMs: number; intervalMs: number };
  settings: SkillSettings;
  /** What is watched: these namespaces (absent: all), and of it what the selector leaves. */
  scope: WatchScope;
  /** Whether this installation receives webhooks. */
  webhooks: boolean;
  workers: { source: number; skill: number };
  /** What one Git host may take of them. */
  gitHosts: HostLimits;
  /** Name of this process in events. */
  identity: string;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  tracer: Tracer;
}

const COUNTS_WORKERS = 2;

/** Caches, watches and the three controllers over them, wired together. */
export class Manager {
  readonly #options: ManagerOptions;
  readonly #sources: Cache<MarketplaceSource>;
  readonly #skills: Cache<Skill>;
  readonly #remotes: Remotes;
  readonly #hosts: GitHosts;
  readonly #byo: Byo | undefined;
  readonly #health = new Health();
  readonly #pins: Pins;
  readonly #measures: (() => void)[] = [];
  readonly #shard: Shard | undefined;
  readonly #upkeep: Upkeep;
  readonly #watches: { source: Watch<MarketplaceSource>; skill: Watch<Skill> };
  readonly #jobs: Reflector<KubeObject> | undefined;
  readonly #recorders: { source: EventRecorder; skill: EventRecorder; upkeep: EventRecorder };
  readonly #queues: { source: Controller; counts: Controller; skill: Controller };

  constructor(options: ManagerOptions) {
    this.#options = options;
    const { api, clock, trees, workers, gitHosts } = options;
    const { labelSelector, namespaces } = options.scope;
    this.#shard = labelSelector === undefined ? undefined : shardOf(api, labelSelector);
    this.#sources = new Cache({ clock, namespaces, indexes: { [STATE]: (source) => [sourceState(source)] } });
    this.#skills = new Cache({
      clock,
      namespaces,
      indexes: {
        [BY_CONTROLLER]: ({ metadata }) =>
          metadata.ownerReferences?.flatMap((ref) => (ref.controller ? [ref.uid] : [])) ?? [],
        [BY_NAME]: (skill) => [nameKey(skill)],
        [STATE]: (skill) => [skillState(skill)],
        [BUILDING]: (skill) => (isBuilding(skill) ? ['true'] : []),
        [REGISTERING]: registeringAt,
      },
    });
    // However many it may take, one worker of each kind is left for the other hosts.
    const perHost = Math.max(1, Math.min(gitHosts.perHost, workers.source - 1, workers.skill - 1));
    this.#hosts = new GitHosts(clock, { ...gitHosts, perHost });
    this.#remotes = new Remotes(new CredentialReader(api, clock), new ProxyReader(api, clock), trees);
    this.#recorders = {
      source: this.#recorder('source-controller'),
      skill: this.#recorder('skill-controller'),
      upkeep: this.#recorder('upkeep'),
    };
    // A sweep that does not see all Skills would delete what the others name.
    const sweep = options.upkeep.sweep && !options.scope.namespaces && !options.scope.labelSelector;
    this.#pins = new Pins(sweep ? { remember: (thing) => thing.startsWith('packages/') } : {});
    this.#byo = options.byo && byoHands(options.byo, { ...options, skills: this.#skills, wake: this.#wake });
    const skill = this.#skillController();
    this.#watches = {
      source: this.#watch(MARKETPLACE_SOURCES, this.#sources, {
        onChange: (change) => onSourceChange(change, this.#queues, this.#shard?.followed),
      }),
      skill: this.#watch(SKILLS, this.#skills, {
        trim: trimSkill,
        onChange: (change) => {
          onSkillChange(change, skill.names, this.#queues);
          this.#byo?.slots.settle(change.object, change.type === 'deleted');
        },
      }),
    };
    this.#jobs = options.byo && this.#jobWatch(options.byo);
    this.#queues = this.#controllers(skill);
    this.#upkeep = this.#makeUpkeep(sweep);
    const { metrics } = options;
    const watches = { ...this.#watches, jobs: this.#jobs };
    const caches = { sources: this.#sources, skills: this.#skills };
    this.#measures.push(() => measureObjects(metrics, caches, watches, this.#byo?.slots));
  }

  /** False when a watch has been silent for too long; for the liveness probe. */
  get alive(): boolean {
    return this.#watches.source.alive && this.#watches.skill.alive && (this.#jobs?.alive ?? true);
  }

  /** Fills the caches, then works until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { source, skill } = this.#watches;
    const watching = [source.run(signal), skill.run(signal), this.#jobs?.run(signal)];
    await Promise.all([source.whenSynced(signal), skill.whenSynced(signal)]);
    await this.#loadLedger(signal);
    this.#options.logger.info({ sources: this.#sources.size, skills: this.#skills.size }, 'caches are in sync');
    await Promise.all([
      ...watching,
      ...Object.values(this.#queues).map((queue) => queue.run(signal)),
      ...Object.values(this.#recorders).map((recorder) => recorder.run(signal)),
      this.#upkeep.run(signal),
    ]);
  }

  /** No name may be used that an entry still holds; where it cannot be read now, the ledger's own loop goes on trying. */
  async #loadLedger(signal: AbortSignal): Promise<void> {
    try {
      await this.#byo?.ledger.load(signal);
    } catch (error) {
      if (signal.aborted) throw error;
      this.#options.logger.warn(`the ledger could not be read yet: ${messageOf(error)}`);
    }
  }

  #makeUpkeep(sweep: boolean): Upkeep {
    const { byo, settings, upkeep } = this.#options;
    return new Upkeep({
      ...this.#options,
      ...upkeep,
      sweep,
      tier1: settings.tier1,
      skills: this.#skills,
      health: this.#health,
      pins: this.#pins,
      byo: this.#byo && byo && { ...this.#byo, registry: byo.registry },
      wake: this.#wake,
      events: this.#recorders.upkeep,
    });
  }

  /** Sets what is read rather than counted; before each scrape. */
  measure(): void {
    for (const measure of this.#measures) measure();
  }

  #recorder(name: string): EventRecorder {
    const { api, clock, logger, identity } = this.#options;
    const reportingController = `skills.tfrobot.io/${name}`;
    return new EventRecorder({ api, reportingController, reportingInstance: identity, clock, logger });
  }

  #watch<T extends MarketplaceSource | Skill>(
    resource: typeof SKILLS | typeof MARKETPLACE_SOURCES,
    cache: Cache<T>,
    hooks: Pick<ConstructorParameters<typeof Reflector<T>>[0], 'trim' | 'onChange'>,
  ): Watch<T> {
    const { api: client, scope, logger, clock } = this.#options;
    return new Watch<T>({ client, resource, cache, logger, clock, ...hooks }, scope);
  }

  readonly #wake = (key: string): void => this.#queues.skill.add(key);

  /** Build Jobs of this installation; a change wakes the Skill that the Job is for. */
  #jobWatch({ settings }: ByoOptions): Reflector<KubeObject> {
    const { api: client, logger, clock } = this.#options;
    const labelSelector = `${BUILD_LABELS.installation}=${labelValue(settings.installation)}`;
    const scope = { namespace: settings.namespace, labelSelector };
    const cache = new Cache<KubeObject>({ clock });
    return new Reflector({
      client,
      resource: JOBS,
      scope,
      cache,
      logger,
      clock,
      // Only that something moved matters; the pass reads the Job live.
      trim: ({ apiVersion, kind, metadata }) => ({
        ...(apiVersion ? { apiVersion } : {}),
        ...(kind ? { kind } : {}),
        metadata,
      }),
      onChange: ({ object }) => {
        const key = object.metadata.annotations?.[BUILD_ANNOTATIONS.skill];
        if (key && this.#skills.get(key)) this.#wake(key);
      },
    });
  }

  #skillController(): SkillController {
    return new SkillController({
      ...this.#options,
      sources: this.#sources,
      skills: this.#skills,
      remotes: this.#remotes,
      hosts: this.#hosts,
      hands: this.#byo?.hands ?? handsOff(new Ledger(this.#options.api, this.#options.operatorNamespace)),
      health: this.#health,
      pins: this.#pins,
      events: this.#recorders.skill,
      wake: this.#wake,
    });
  }

  #controllers(skill: SkillController): { source: Controller; counts: Controller; skill: Controller } {
    const { api, clock, trees, webhooks, workers } = this.#options;
    const shared = { api, clock, sources: this.#sources, skills: this.#skills };
    const source = new SourceController({
      ...shared,
      trees,
      webhooks,
      remotes: this.#remotes,
      hosts: this.#hosts,
      wake: (key) => this.#queues.source.add(key),
      events: this.#recorders.source,
      shard: this.#shard,
    });
    const { reconcile, intervalOf } = source;
    const counts = new CountsController(shared);
    const sources = { cache: this.#sources, refresh: this.#refresh('source') };
    const skills = { cache: this.#skills, refresh: this.#refresh('skill') };
    return {
      source: this.#controller('source', workers.source, { reconcile, intervalOf, settles: [sources, skills] }),
      counts: this.#controller('counts', COUNTS_WORKERS, {
        reconcile: counts.reconcile,
        intervalOf,
        settles: [sources],
      }),
      skill: this.#controller('skill', workers.skill, {
        reconcile: skill.reconcile,
        intervalOf: skill.intervalOf,
        settles: [skills],
      }),
    };
  }

  #refresh(kind: 'source' | 'skill') {
    return (key: string, signal: AbortSignal) => this.#watches[kind].refresh(key, signal);
  }

  #controller(
    name: string,
    workers: number,
    parts: Pick<ControllerOptions, 'reconcile' | 'intervalOf' | 'settles'>,
  ): Controller {
    const { clock, logger, metrics, tracer } = this.#options;
    const traced: Reconcile = (key, signal) =>
      tracer.root(`reconcile ${name}`, { controller: name, key }, () => parts.reconcile(key, signal));
    const instruments = new Instruments(name, workers, metrics);
    const queue = new WorkQueue({ clock, observer: instruments.queue });
    const controller = new Controller({
      ...{ name, workers, clock, logger, queue, ...parts },
      reconcile: instruments.around(traced),
      observe: (outcome, seconds) => instruments.reconciled(outcome, seconds),
    });
    this.#measures.push(() => instruments.measure(queue, clock));
    return controller;
  }
}
