import type { Clock } from '../base/clock.ts';
import type { Compute } from '../base/compute.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Tracer } from '../base/trace.ts';
import type { SandboxEngine } from '../engine/port.ts';
import type { KubeClient } from '../kube/rest.ts';
import type { WatchScope } from '../kube/watch.ts';
import type { TreeSource } from '../marketplace/port.ts';
import type { Engine } from '../protocol/types.ts';
import type { KeySpace } from '../store/keys.ts';
import type { PackageStore } from '../store/packages.ts';
import type { ObjectStore } from '../store/port.ts';
import type { ByoOptions } from './byo/setup.ts';
import type { HostLimits } from './githosts.ts';
import type { SkillSettings } from './skill/settings.ts';

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
