import type { MarketplaceSource } from '../api/marketplacesource.ts';
import { MARKETPLACE_SOURCES, SKILLS } from '../api/resources.ts';
import type { Skill } from '../api/skill.ts';
import { messageOf } from '../base/errors.ts';
import type { Controller } from '../kube/controller.ts';
import { EventRecorder } from '../kube/events.ts';
import type { Reflector } from '../kube/reflector.ts';
import type { Cache } from '../kube/store.ts';
import type { KubeObject } from '../kube/types.ts';
import { Watch } from '../kube/watch.ts';
import { handsOff } from './byo/hands.ts';
import { Ledger } from './byo/ledger.ts';
import { type Byo, byoHands } from './byo/setup.ts';
import { buildWatch } from './byo/watch.ts';
import { skillCache, sourceCache } from './caches.ts';
import { onSkillChange, onSourceChange } from './changes.ts';
import { CredentialReader, ProxyReader } from './credentials.ts';
import { GitHosts } from './githosts.ts';
import { Health } from './health.ts';
import { SourceController } from './marketplacesource/controller.ts';
import { CountsController } from './marketplacesource/counts.ts';
import { type Shard, shardOf } from './marketplacesource/shard.ts';
import { measureObjects } from './measures.ts';
import { type ControllerParts, observedController } from './observed.ts';
import type { ManagerOptions } from './options.ts';
import { Pins } from './pins.ts';
import { Remotes } from './remotes.ts';
import { SkillController } from './skill/controller.ts';
import { trimSkill } from './skill/status.ts';
import { Upkeep } from './sweep/upkeep.ts';

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
    this.#sources = sourceCache(clock, namespaces);
    this.#skills = skillCache(clock, namespaces);
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
    this.#jobs =
      options.byo && buildWatch(options.byo.settings, { ...options, skills: this.#skills, wake: this.#wake });
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

  #controller(name: string, workers: number, parts: ControllerParts): Controller {
    const { controller, measure } = observedController(name, workers, parts, this.#options);
    this.#measures.push(measure);
    return controller;
  }
}
