import type { Skill } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf, PolicyError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Registry } from '../../build/port.ts';
import type { SandboxEngine } from '../../engine/port.ts';
import { KubeError } from '../../kube/errors.ts';
import type { EventInput } from '../../kube/events.ts';
import type { Lister } from '../../kube/pages.ts';
import type { Key, KubeApi, KubeObject, Store } from '../../kube/types.ts';
import type { Engine } from '../../protocol/types.ts';
import { Gate } from '../../store/gate.ts';
import type { KeySpace } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/port.ts';
import type { Byo } from '../byo/setup.ts';
import type { Health } from '../health.ts';
import type { Pins } from '../pins.ts';
import { StoreHeal } from './heal.ts';
import { LedgerWorker } from './ledger-worker.ts';
import { PlatformCheck } from './platform.ts';
import { type BlockKind, OperatorState } from './state.ts';
import { Sweeper } from './sweeper.ts';
import { TemplateHeal } from './templates.ts';

/** What heal, sweep and ledger work with. */
export interface UpkeepOptions {
  api: KubeApi & Lister;
  skills: Store<Skill>;
  store: ObjectStore;
  space: KeySpace;
  operatorNamespace: string;
  health: Health;
  pins: Pins;
  engines: Readonly<Partial<Record<Engine, SandboxEngine>>>;
  /** runtime → id or alias of the platform template. */
  tier1: Readonly<Partial<Record<string, string>>>;
  byo?: (Byo & { registry: Registry }) | undefined;
  /** Deletes what no Skill names; only where all Skills of the cluster are in view. */
  sweep: boolean;
  graceMs: number;
  /** Between two heals and between two sweeps. */
  intervalMs: number;
  wake: (key: Key) => void;
  events: { record(regarding: KubeObject, input: EventInput): void };
  clock: Clock;
  logger: Logger;
  metrics: Pick<Metrics, 'upkeep' | 'blocked'>;
  random?: () => number;
}

const FIRST_HEAL_MS = 30_000;
const FIRST_SWEEP_MS = 30 * 60_000;
const JITTER = 0.1;
/** After a failed round, and between two looks at an open block or an unknown platform template. */
const LOOK_MS = 60_000;

/** Runs heal, sweep, ledger and the check of platform templates in the background, each in its own rhythm, none of them at once with the sweep. */
export class Upkeep {
  readonly #options: UpkeepOptions;
  readonly #logger: Logger;
  readonly #state: OperatorState;
  readonly #gate = new Gate(1);

  constructor(options: UpkeepOptions) {
    this.#options = options;
    this.#logger = options.logger.child({ controller: 'upkeep' });
    const { api, operatorNamespace: namespace, clock, metrics, events } = options;
    this.#state = new OperatorState({ api, namespace, clock, logger: this.#logger, metrics, events });
  }

  /** Works until `signal` aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { intervalMs, sweep, byo } = this.#options;
    const random = this.#options.random ?? Math.random;
    await Promise.all([
      this.#healing(Math.min(FIRST_HEAL_MS, intervalMs) * random(), signal),
      this.#platform(signal),
      sweep ? this.#sweeping(Math.min(FIRST_SWEEP_MS, intervalMs) * (0.5 + random() / 2), signal) : undefined,
      byo ? this.#ledger(byo, signal) : undefined,
    ]);
  }

  #shared() {
    const { skills, health, wake, clock, metrics } = this.#options;
    return { skills, health, wake, clock, metrics, state: this.#state, logger: this.#logger };
  }

  #healing(firstMs: number, signal: AbortSignal): Promise<void> {
    const { store, space, engines } = this.#options;
    const packages = new StoreHeal({ ...this.#shared(), store, space });
    const templates = new TemplateHeal({ ...this.#shared(), engines });
    const kinds: BlockKind[] = [
      'StoreSuspect',
      ...Object.keys(engines).map((name) => `EngineSuspect.${name}` as const),
    ];
    const round = async (): Promise<boolean> => {
      const blocked = [await packages.run(signal), await templates.run(signal)];
      return blocked.includes(true);
    };
    return this.#rounds('heal', firstMs, round, kinds, signal);
  }

  #sweeping(firstMs: number, signal: AbortSignal): Promise<void> {
    const { api, store, space, pins, graceMs, byo, metrics } = this.#options;
    const sweeper = new Sweeper({
      ...{ api, store, space, pins, graceMs, metrics, state: this.#state, logger: this.#logger },
      images: byo && { registry: byo.registry, repositoryOf: (owner) => byo.repositoryOf(owner) },
      ledgerImages: () => byo?.ledger.images() ?? new Set(),
    });
    return this.#rounds('sweep', firstMs, async () => (await sweeper.run(signal)).blocked, ['SweepBlocked'], signal);
  }

  /** A round per interval; while a block stands, one as soon as a person allowed it. */
  async #rounds(
    name: string,
    firstMs: number,
    round: () => Promise<boolean>,
    blocks: BlockKind[],
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, intervalMs } = this.#options;
    let blockedUntil: number | undefined;
    await this.#loop(name, firstMs, signal, async () => {
      if (blockedUntil !== undefined && clock.monotonic() < blockedUntil && !(await this.#anyAllowed(blocks, signal))) {
        return LOOK_MS;
      }
      const blocked = await this.#gate.run(signal, round);
      const wait = this.#jittered(intervalMs);
      blockedUntil = blocked ? clock.monotonic() + wait : undefined;
      return blocked ? LOOK_MS : wait;
    });
  }

  async #anyAllowed(blocks: BlockKind[], signal: AbortSignal): Promise<boolean> {
    for (const block of blocks) if ((await this.#state.allowed(block, signal)) !== undefined) return true;
    return false;
  }

  #platform(signal: AbortSignal): Promise<void> {
    const { engines, tier1, intervalMs } = this.#options;
    const check = new PlatformCheck({ ...this.#shared(), engines, tier1 });
    return this.#loop('platform templates', 0, signal, async () =>
      (await check.run(signal)) ? this.#jittered(intervalMs) : LOOK_MS,
    );
  }

  async #ledger({ ledger, removals, leftovers }: Byo, signal: AbortSignal): Promise<void> {
    const { api, pins, intervalMs } = this.#options;
    const worker = new LedgerWorker({ ...this.#shared(), api, ledger, removals, leftovers, pins });
    let nudge = new AbortController();
    ledger.onAdd(() => nudge.abort());
    await this.#loop('ledger', 0, signal, async () => {
      nudge = new AbortController();
      // Also what a person changed, or another process wrote before this one led.
      await ledger.load(signal);
      const again = await worker.run(signal);
      await this.#sleep(again ?? this.#jittered(intervalMs), nudge.signal, signal);
      return 0;
    });
  }

  /** Sleeps until the time is over or somebody nudges. */
  async #sleep(ms: number, nudge: AbortSignal, signal: AbortSignal): Promise<void> {
    try {
      await this.#options.clock.sleep(ms, AbortSignal.any([nudge, signal]));
    } catch (error) {
      if (signal.aborted || !nudge.aborted) throw error;
    }
  }

  /** `work` returns the milliseconds until it wants to run again; after a failure it runs again after a minute, or an interval if that is less. */
  async #loop(name: string, firstMs: number, signal: AbortSignal, work: () => Promise<number>): Promise<void> {
    const { clock, intervalMs } = this.#options;
    let wait = firstMs;
    while (!signal.aborted) {
      try {
        await clock.sleep(wait, signal);
        wait = Math.min(await work(), intervalMs * (1 + JITTER));
      } catch (error) {
        if (signal.aborted) return;
        wait = Math.min(LOOK_MS, intervalMs);
        const known = error instanceof PolicyError || error instanceof KubeError;
        if (known) this.#logger.warn({ againMs: wait }, `${name} could not be completed: ${messageOf(error)}`);
        else this.#logger.error({ err: error, againMs: wait }, `${name} failed by a defect`);
      }
    }
  }

  #jittered(ms: number): number {
    return Math.round(ms * (1 - JITTER * (this.#options.random ?? Math.random)()));
  }
}
