import type { Skill } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Tracer } from '../../base/trace.ts';
import type { Registry } from '../../build/port.ts';
import type { BuildSettings } from '../../build/settings.ts';
import type { KubeClient } from '../../kube/rest.ts';
import type { Key, Store } from '../../kube/types.ts';
import type { Engine } from '../../protocol/types.ts';
import type { KeySpace } from '../../store/keys.ts';
import type { PackageStore } from '../../store/packages.ts';
import type { ObjectStore } from '../../store/port.ts';
import type { Expecting } from '../status-writer.ts';
import { type BuildDeps, Builds } from './builds.ts';
import { ByoHands } from './hands.ts';
import { BuildJobs } from './jobs.ts';
import { Ledger } from './ledger.ts';
import { Leftovers } from './leftovers.ts';
import type { Hands } from './port.ts';
import { Preflight, type WriteCheck } from './preflight.ts';
import { type ImageOwner, ImageRecords } from './records.ts';
import { type EngineSetup, Registrations } from './registrations.ts';
import { Removals } from './removals.ts';
import { BuildSlots } from './slots.ts';

/** What an installation that builds brings along. */
export interface ByoOptions {
  settings: BuildSettings;
  registry: Registry;
  engines: Readonly<Partial<Record<Engine, EngineSetup>>>;
  store: ObjectStore & WriteCheck;
  space: KeySpace;
  operatorNamespace: string;
  allowAnonymousWrites: boolean;
}

interface Surroundings {
  api: KubeClient;
  packages: PackageStore;
  skills: Store<Skill> & Expecting;
  clock: Clock;
  metrics?: Metrics;
  tracer?: Tracer;
  wake: (key: Key) => void;
}

/** What an installation with builds and engines is made of, as far as others need it. */
export interface Byo {
  hands: Hands;
  slots: BuildSlots;
  ledger: Ledger;
  removals: Removals;
  leftovers: Leftovers;
  /** Repository of a Skill's images, without the host. */
  repositoryOf(owner: ImageOwner): string;
}

const endedBuild =
  (metrics: Metrics, tracer: Tracer | undefined): BuildDeps['ended'] =>
  (engine, result, seconds) => {
    metrics.add('skill_operator_builds_total', { engine, result });
    if (seconds === undefined) return;
    tracer?.record('build', { engine, result }, seconds, result === 'failed' ? result : undefined);
    metrics.observe('skill_operator_build_duration_seconds', { engine, result }, seconds);
  };

/** The hands of an installation with builds and engines, and the slots that must hear of every change of a Skill. */
export function byoHands(options: ByoOptions, around: Surroundings): Byo {
  const { settings, registry, engines, store, space } = options;
  const { api, packages, skills, clock, wake, metrics, tracer } = around;
  const ended = metrics && endedBuild(metrics, tracer);
  const slots = new BuildSlots(skills, settings.limits, clock, wake);
  const jobs = new BuildJobs(api, settings);
  const records = new ImageRecords(store, space);
  const preflight = new Preflight({ registry, store, allowAnonymousWrites: options.allowAnonymousWrites, clock });
  const builds = new Builds({
    settings,
    jobs,
    records,
    registry,
    preflight,
    packages,
    store,
    space,
    slots,
    clock,
    ended,
  });
  const registrations = new Registrations({ installation: settings.installation, engines, skills, clock });
  const boundMs = settings.deadlines.removalSeconds * 1000;
  const removals = new Removals({ builds, registrations, registry, records, clock, boundMs });
  const ledger = new Ledger(api, options.operatorNamespace);
  const leftovers = new Leftovers({ builds, jobs, registry, records, ledger });
  const hands = new ByoHands({
    boundMs,
    api,
    skills,
    jobs,
    builds,
    registrations,
    removals,
    ledger,
    leftovers,
    slots,
    records,
  });
  return { hands, slots, ledger, removals, leftovers, repositoryOf: (owner) => builds.repositoryOf(owner) };
}
