import { FIELD_MANAGERS, FINALIZER } from '../../api/labels.ts';
import { skillDirectory } from '../../api/names.ts';
import { SKILLS } from '../../api/resources.ts';
import type { Retired, Skill } from '../../api/skill.ts';
import { retry } from '../../base/errors.ts';
import { parsePinned } from '../../build/names.ts';
import { BUILD_DEFAULTS } from '../../build/settings.ts';
import { toPolicyError } from '../../kube/errors.ts';
import { addFinalizer } from '../../kube/finalizer.ts';
import { type KubeApi, keyOf } from '../../kube/types.ts';
import type { Context, Event, Work } from '../../lifecycle/slots.ts';
import { workOf } from '../../lifecycle/work.ts';
import type { Expecting } from '../status-writer.ts';
import type { Builds } from './builds.ts';
import type { BuildJobs } from './jobs.ts';
import { type Ledger, ledgerEntry, leftoversEntry } from './ledger.ts';
import type { Leftovers } from './leftovers.ts';
import type { Hands, HandsResult, HandsTask } from './port.ts';
import type { ImageRecords } from './records.ts';
import type { Registrations } from './registrations.ts';
import type { Removals } from './removals.ts';
import type { BuildSlots } from './slots.ts';

interface HandsDeps {
  boundMs: number;
  api: KubeApi;
  skills: Expecting;
  jobs: BuildJobs;
  builds: Builds;
  registrations: Registrations;
  removals: Removals;
  ledger: Ledger;
  leftovers: Leftovers;
  records: ImageRecords;
  slots: BuildSlots;
}

/** Until a build pod that was told to end may have ended, and until a registry that did not answer is asked again. */
const ENDING_MS = 2_000;
const REGISTRY_MS = 30_000;

/** The hands of the state machine: build Jobs, registry and engines, each driven from the status alone. */
export class ByoHands implements Hands {
  readonly #deps: HandsDeps;
  readonly boundMs: number;

  constructor(deps: HandsDeps) {
    this.#deps = deps;
    this.boundMs = deps.boundMs;
  }

  configuredFor(engine: string | undefined): boolean {
    return this.#deps.registrations.setupOf(engine) !== undefined;
  }

  async step(task: HandsTask, ctx: Context, signal: AbortSignal): Promise<HandsResult> {
    const results = [await this.#candidate(task, ctx, signal), await this.#removals(task, ctx, signal)];
    const waits = results.flatMap(({ againMs }) => (againMs === undefined ? [] : [againMs]));
    return {
      events: results.flatMap(({ events }) => events),
      againMs: waits.length > 0 ? Math.min(...waits) : undefined,
      ignored: results.find(({ ignored }) => ignored !== undefined)?.ignored,
    };
  }

  cancelJob(jobName: string, signal: AbortSignal): Promise<void> {
    return jobName === '' ? Promise.resolve() : this.#deps.jobs.cancel(jobName, signal);
  }

  cancelAll(skill: Skill, signal: AbortSignal): Promise<void> {
    return this.#deps.jobs.cancelAll(skill, signal);
  }

  async toLedger(skill: Skill, entry: Retired, why: string, signal: AbortSignal): Promise<void> {
    await this.#deps.ledger.add(ledgerEntry(ledgerOwner(skill), entry, why), signal);
  }

  async keepImages(skill: Skill, signal: AbortSignal): Promise<void> {
    const { namespace = '', name } = skill.metadata;
    const { served, candidate, retired = [] } = skill.status ?? {};
    const kept = retired.filter(({ state }) => state === 'Kept');
    for (const version of [served, candidate, ...kept]) {
      const image = parsePinned(version?.image ?? '');
      const owner = { namespace, skill: name, engine: version?.engine ?? '' };
      if (image) await this.#deps.records.keepDigest(owner, image.digest, signal);
    }
  }

  async clear(skill: Skill, signal: AbortSignal): Promise<number | undefined> {
    const { namespace = '', name, uid = '' } = skill.metadata;
    try {
      await this.#live(skill, [], signal);
      await this.#deps.leftovers.remove({ namespace, skill: name, uid }, signal);
      return undefined;
    } catch (error) {
      if (signal.aborted) throw error;
      return toPolicyError(error).reason === 'RemovalPending' ? ENDING_MS : REGISTRY_MS;
    }
  }

  async clearLater(skill: Skill, signal: AbortSignal): Promise<void> {
    await this.#deps.ledger.add(leftoversEntry(ledgerOwner(skill)), signal);
  }

  ledgerDigests({ metadata }: Skill): string[] {
    return this.#deps.ledger.digestsOf(metadata.namespace ?? '', metadata.name);
  }

  yieldTurn(skill: Skill): void {
    this.#deps.slots.yieldTurn(skill);
  }

  async #candidate(task: HandsTask, ctx: Context, signal: AbortSignal): Promise<HandsResult> {
    const { skill, slots, rebuild } = task;
    const { candidate } = slots;
    const work = workOf(slots, ctx);
    const starts = work.some(({ type }) => type === 'StartBuild');
    this.#deps.slots.begin(skill, starts);
    if (!candidate || ctx.suspended || ctx.deleting) return { events: [] };
    if (candidate.phase === 'Building' && candidate.jobName) {
      return this.#deps.builds.observe(skill, candidate, rebuild, signal);
    }
    if (starts) {
      const ready = () => this.#live(skill, work, signal);
      return this.#deps.builds.start(task, candidate, ready, signal);
    }
    if (work.some(({ type }) => type === 'Register')) {
      await this.#live(skill, [], signal);
      return this.#deps.registrations.step(skill, candidate, slots, signal);
    }
    return { events: [], againMs: untilDue(candidate.retryAt, ctx.now) };
  }

  async #removals({ skill, slots }: HandsTask, ctx: Context, signal: AbortSignal): Promise<HandsResult> {
    const entries = workOf(slots, ctx).flatMap((work) => (work.type === 'DeleteExternal' ? [work.entry] : []));
    if (entries.length === 0) return { events: [] };
    await this.#live(skill, [], signal);
    return this.#deps.removals.step(skill, entries, false, signal);
  }

  /** Before anything outside is made or deleted: the object as it is now must be the one that was decided on; then the finalizer. */
  async #live(skill: Skill, work: readonly Work[], signal: AbortSignal): Promise<void> {
    const { namespace = '', name, uid, generation } = skill.metadata;
    const live = await this.#deps.api.get<Skill>(SKILLS, namespace, name, signal);
    const same = live?.metadata.uid === uid && live?.metadata.generation === generation;
    if (!live || !same || Boolean(live.metadata.deletionTimestamp) !== Boolean(skill.metadata.deletionTimestamp)) {
      throw retry('Conflict', `Skill ${name} changed meanwhile; the pass runs again`, { retryAfterMs: 500 });
    }
    if (!work.some(({ type }) => type === 'AddFinalizer')) return;
    const writer = { api: this.#deps.api, resource: SKILLS, fieldManager: FIELD_MANAGERS.skill };
    const written = await addFinalizer(writer, live, FINALIZER, signal);
    this.#deps.skills.expect(keyOf(skill), written.metadata.resourceVersion);
  }
}

const untilDue = (retryAt: string | undefined, now: string): number | undefined =>
  retryAt === undefined ? undefined : Math.max(500, Date.parse(retryAt) - Date.parse(now) + 500);

/** Whose entry it is in the ledger. */
function ledgerOwner({ metadata, spec }: Skill) {
  const { namespace = '', name, uid = '' } = metadata;
  return { namespace, name, uid, bareName: skillDirectory(spec.path) };
}

/** No builds and no engines here: everything that needs them waits, and what is outside is written down for later settings. */
export const handsOff = (ledger: Pick<Ledger, 'add'>): Hands => ({
  boundMs: BUILD_DEFAULTS.deadlines.removalSeconds * 1000,
  configuredFor: () => false,
  step: () => Promise.resolve({ events: [] as Event[] }),
  cancelJob: () => Promise.resolve(),
  cancelAll: () => Promise.resolve(),
  toLedger: (skill, entry, why, signal) => ledger.add(ledgerEntry(ledgerOwner(skill), entry, why), signal),
  keepImages: () => Promise.resolve(),
  clear: () => Promise.resolve(undefined),
  clearLater: () => Promise.resolve(),
  ledgerDigests: () => [],
  yieldTurn: () => undefined,
});
