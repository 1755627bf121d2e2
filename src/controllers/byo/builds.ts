import type { Candidate, Skill, Version } from '../../api/skill.ts';
import { type Clock, rfc3339 } from '../../base/clock.ts';
import type { BuildInput } from '../../build/input.ts';
import { imageRepository, pinnedImage } from '../../build/names.ts';
import type { Registry } from '../../build/port.ts';
import type { BuildSettings } from '../../build/settings.ts';
import { type BuildState, buildStateOf } from '../../build/state.ts';
import type { Event } from '../../lifecycle/slots.ts';
import type { Engine } from '../../protocol/types.ts';
import type { KeySpace } from '../../store/keys.ts';
import type { PackageStore } from '../../store/packages.ts';
import type { ObjectStore } from '../../store/port.ts';
import { isRequested } from '../requests.ts';
import { BuildInputs } from './inputs.ts';
import type { BuildJobs } from './jobs.ts';
import type { HandsResult, HandsTask } from './port.ts';
import type { Preflight } from './preflight.ts';
import type { ImageOwner, ImageRecords } from './records.ts';
import type { BuildSlots } from './slots.ts';

/** What builds work with. */
export interface BuildDeps {
  settings: BuildSettings;
  jobs: BuildJobs;
  records: ImageRecords;
  registry: Registry;
  preflight: Preflight;
  packages: PackageStore;
  store: ObjectStore;
  space: KeySpace;
  slots: BuildSlots;
  clock: Clock;
  /** Told once of every Job that ended; `seconds` from the start of the build, where that is known. */
  ended?: ((engine: string, result: 'succeeded' | 'failed', seconds: number | undefined) => void) | undefined;
}

/** When a running build is looked at should no event of its Job arrive. */
const LOOK_MS = 15_000;
const BLOCKED_MS = 60_000;
/** Between the end of a Job that left nothing behind and the next attempt. */
const LOST_MS = 5_000;
/** Every Job waits for a moment; only what lasts is told. */
const PATIENCE_MS = 5_000;
/** For a pod that merely has not started: its images may take this long. */
const START_MS = 60_000;

/** More than run at once. */
const MAX_TOLD = 1_000;

const again = (events: Event[], againMs?: number): HandsResult => ({ events, againMs });

/** Drives the image of a candidate from Queued to an image that the registry confirmed. */
export class Builds {
  readonly #deps: BuildDeps;
  readonly #inputs: BuildInputs;
  /** The last Jobs whose end was told: a pass may see the same end again. */
  readonly #told = new Set<string>();

  constructor(deps: BuildDeps) {
    this.#deps = deps;
    this.#inputs = new BuildInputs(deps);
  }

  /** Repository of a Skill's images, without the host. */
  repositoryOf(owner: ImageOwner): string {
    const { installation, registry } = this.#deps.settings;
    return imageRepository(registry.prefix, { installation, ...owner, engine: owner.engine as Engine });
  }

  /** Starts a build whose turn has come. `ready` is called directly before the first write: the finalizer. */
  async start(
    { skill, slots, rebuild }: HandsTask,
    candidate: Candidate,
    ready: () => Promise<void>,
    signal: AbortSignal,
  ): Promise<HandsResult> {
    const owner = ownerOf(skill, candidate);
    const problem = await this.#deps.preflight.problem(this.repositoryOf(owner), isRequested(skill), signal);
    if (problem) return again(blocked(candidate, problem.reason, problem.message), problem.retryAfterMs ?? BLOCKED_MS);
    const input = await this.#inputs.of(skill, candidate, rebuild, signal);
    const known = await this.#confirmed(owner, input, signal);
    if (known && slots.retired.some(({ state, image }) => state === 'Deleting' && image === known)) {
      const message =
        'the image of this very Dockerfile is being removed with an earlier version; it is built anew when that is done';
      return again(blocked(candidate, 'RemovalPending', message), LOOK_MS);
    }
    if (known) {
      await ready();
      // The image of this very input is there: a restored cluster, or a status write that was lost.
      return again(
        [
          { type: 'BuildStarted', jobName: '', buildID: input.inputHash },
          { type: 'BuildDone', image: known },
        ],
        0,
      );
    }
    const turn = this.#deps.slots.ask(skill);
    if (!turn.start) return again(blocked(candidate, 'BuildQueued', turn.message), BLOCKED_MS);
    try {
      await ready();
      const jobName = await this.#deps.jobs.start(input, () => this.#inputs.urls(skill, candidate), signal);
      return again([{ type: 'BuildStarted', jobName, buildID: input.inputHash }], LOOK_MS);
    } catch (error) {
      this.#deps.slots.release(skill);
      throw error;
    }
  }

  /** Looks at the Job of a candidate that is being built. */
  async observe(
    skill: Skill,
    candidate: Candidate,
    rebuild: string | undefined,
    signal: AbortSignal,
  ): Promise<HandsResult> {
    const view = await this.#deps.jobs.view(candidate.jobName ?? '', signal);
    const state = buildStateOf({ ...view, now: this.#deps.clock.now(), settings: this.#deps.settings });
    switch (state.phase) {
      case 'Pending':
        return again(this.#waiting(candidate, state), Math.min(LOOK_MS, Math.max(1_000, state.remainingMs)));
      case 'Running':
        return again(candidate.reason === undefined ? [] : [{ type: 'Unblocked' }], LOOK_MS);
      case 'Deleting':
        return again([], LOOK_MS);
      case 'Suspended':
        return this.#resume(skill, candidate, rebuild, view.job?.metadata?.uid, signal);
      case 'NotStarted':
        return this.#vanished(skill, candidate, rebuild, signal);
      case 'Succeeded':
        this.#tell(candidate, 'succeeded');
        return { ...(await this.#succeeded(skill, candidate, rebuild, state, signal)), ignored: state.warnings };
      case 'Failed':
        this.#tell(candidate, 'failed');
        return { ...again([this.#failure(state)], state.retryAfterMs), ignored: state.warnings };
    }
  }

  #tell({ jobName = '', engine = '', startedAt }: Candidate, result: 'succeeded' | 'failed'): void {
    if (this.#told.has(jobName)) return;
    this.#told.add(jobName);
    for (const oldest of this.#told) {
      if (this.#told.size <= MAX_TOLD) break;
      this.#told.delete(oldest);
    }
    const began = Date.parse(startedAt ?? '');
    const seconds = Number.isNaN(began) ? undefined : Math.max(0, (this.#deps.clock.now() - began) / 1000);
    this.#deps.ended?.(engine, result, seconds);
  }

  async #resume(
    skill: Skill,
    candidate: Candidate,
    rebuild: string | undefined,
    uid: string | undefined,
    signal: AbortSignal,
  ): Promise<HandsResult> {
    const input = await this.#inputs.of(skill, candidate, rebuild, signal, candidate.attempt);
    await this.#deps.jobs.resume(
      candidate.jobName ?? '',
      input,
      uid ?? '',
      () => this.#inputs.urls(skill, candidate),
      signal,
    );
    return again([], LOOK_MS);
  }

  /** No Job: it may have ended long ago, which its record tells; else the next attempt follows. */
  async #vanished(
    skill: Skill,
    candidate: Candidate,
    rebuild: string | undefined,
    signal: AbortSignal,
  ): Promise<HandsResult> {
    const input = await this.#inputs.of(skill, candidate, rebuild, signal);
    const image = await this.#confirmed(ownerOf(skill, candidate), input, signal);
    if (image) return again([{ type: 'BuildDone', image }], 0);
    const retryAt = rfc3339(this.#deps.clock.now() + LOST_MS);
    const message = 'the build Job was deleted before it ended; it is started again';
    return again([{ type: 'TransientFailure', retryAt, reason: 'BuildInterrupted', message }], LOST_MS);
  }

  async #succeeded(
    skill: Skill,
    candidate: Candidate,
    rebuild: string | undefined,
    state: Extract<BuildState, { phase: 'Succeeded' }>,
    signal: AbortSignal,
  ): Promise<HandsResult> {
    const owner = ownerOf(skill, candidate);
    const repository = this.repositoryOf(owner);
    // The pod's word is a hint; only the registry's own answer counts.
    const image = await this.#deps.registry.image(repository, state.digest, signal);
    if (!image) {
      const retryAt = rfc3339(this.#deps.clock.now() + LOOK_MS);
      const message = `the build reported image ${state.digest}, but the registry does not have it; it is built again`;
      return again([{ type: 'TransientFailure', retryAt, reason: 'ImageNotFound', message }], LOOK_MS);
    }
    const input = await this.#inputs.of(skill, candidate, rebuild, signal);
    await this.#deps.records.put(owner, input.inputHash, image, signal);
    return again([{ type: 'BuildDone', image: pinnedImage(this.#deps.registry.host, repository, image.digest) }], 0);
  }

  /** Why a Job does not get on, once it is no matter of moments. */
  #waiting(candidate: Candidate, { reason, message, remainingMs }: Extract<BuildState, { phase: 'Pending' }>): Event[] {
    const waitedMs = this.#deps.settings.deadlines.pendingSeconds * 1000 - remainingMs;
    const lasts = waitedMs >= (reason === 'BuildPodNotStarted' ? START_MS : PATIENCE_MS);
    return lasts ? blocked(candidate, reason, message) : [];
  }

  #failure(state: Extract<BuildState, { phase: 'Failed' }>): Event {
    const { reason, message, logTail, retryAfterMs } = state;
    const said = { reason, message, ...(logTail === undefined ? {} : { logTail }) };
    return retryAfterMs === undefined
      ? { type: 'TerminalFailure', ...said }
      : { type: 'TransientFailure', retryAt: rfc3339(this.#deps.clock.now() + retryAfterMs), ...said };
  }

  /** The pinned image of an input, when its record names one that the registry still has. */
  async #confirmed(owner: ImageOwner, input: BuildInput, signal: AbortSignal): Promise<string | undefined> {
    const record = await this.#deps.records.get(owner, input.inputHash, signal);
    if (!record) return undefined;
    const repository = this.repositoryOf(owner);
    const there = await this.#deps.registry.has(repository, record.digest, signal);
    return there ? pinnedImage(this.#deps.registry.host, repository, record.digest) : undefined;
  }
}

/** A reason that stands already is not written again: places in the queue change all the time. */
const blocked = (candidate: Candidate, reason: string, message: string): Event[] =>
  candidate.reason === reason ? [] : [{ type: 'Blocked', reason, message }];

const ownerOf = (skill: Skill, version: Version): ImageOwner => ({
  namespace: skill.metadata.namespace ?? '',
  skill: skill.metadata.name,
  engine: version.engine ?? '',
});
