import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { PolicyError, retry, stalled } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { hasRemains, layOut, remove, resetConfig, sizeOf } from './disk.ts';
import { Generation } from './generation.ts';
import type { GitLimits } from './limits.ts';
import type { Resolved } from './port.ts';
import { waitFor } from './wait.ts';

/** Runs one `git fetch` of `source` into the mirror directory `dir`, under its own deadline. */
export type FetchInto = (dir: string, source: string, target: string, signal: AbortSignal) => Promise<void>;

/** What all mirrors of one source share. */
export interface MirrorContext {
  dir: string;
  gitPath: string;
  clock: Clock;
  log: Logger;
  limits: GitLimits;
  /** Aborts when the process ends; fetches run under it and not under a waiter's signal. */
  closing: AbortSignal;
  /** All clones on disk, retired ones with open readers included. */
  generations: Set<Generation>;
  /** A number that no other directory of this process has. */
  next: () => number;
}

const WATCH_MS = 250;
const ATTEMPTS = 3;

/**
 * The bare repository of one URL and credential value: depth 1, never checked out, one fetch at a time.
 * Callers for the same commit share a fetch; a caller that gives up only stops waiting.
 */
export class Mirror {
  readonly #context: MirrorContext;
  readonly #name: string;
  #current: Generation | undefined;
  /** The fetch of each wanted commit, running or queued. */
  readonly #flights = new Map<string, Promise<void>>();
  #tail: Promise<void> = Promise.resolve();
  /** Monotonic time of the last use. */
  usedAt: number;
  /** Monotonic time since which no object names it. */
  unnamedSince: number | undefined;

  constructor(context: MirrorContext, name: string) {
    this.#context = context;
    this.#name = name;
    this.usedAt = context.clock.monotonic();
  }

  /** Bytes on disk of the clone that new readers get. */
  get bytes(): number {
    return this.#current?.bytes ?? 0;
  }

  /** True while a fetch runs or waits. */
  get busy(): boolean {
    return this.#flights.size > 0;
  }

  /** The clone that holds the commit, if any; lease it in the same turn of the event loop. */
  holding(commit: string): Generation | undefined {
    this.usedAt = this.#context.clock.monotonic();
    return this.#current?.commits.has(commit) ? this.#current : undefined;
  }

  /**
   * Hands the clone that holds the commit to `take`, which leases it; fetched when it is not there yet.
   * @throws PolicyError of the fetch; the signal's reason when the caller gives up (the fetch goes on).
   */
  async obtain<T>(
    resolved: Resolved,
    fetchInto: FetchInto,
    take: (generation: Generation) => T,
    signal: AbortSignal,
  ): Promise<T> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      signal.throwIfAborted();
      const held = this.holding(resolved.commit);
      if (held) return take(held);
      await waitFor(this.#flight(resolved, fetchInto), signal);
    }
    const held = this.holding(resolved.commit);
    if (held) return take(held);
    throw retry(
      'MirrorCorrupt',
      'the local mirror was replaced again and again while it was read: the operator tries again by itself',
    );
  }

  /** Forgets the clone, or does nothing when it is not the current one; open readers finish. The next `obtain` clones anew. */
  async discard(generation = this.#current): Promise<void> {
    const old = this.#current;
    if (old !== generation) return;
    this.#current = undefined;
    await old?.retire();
  }

  /** Resolves when no fetch runs or waits any more. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#flights.values());
  }

  #flight(resolved: Resolved, fetchInto: FetchInto): Promise<void> {
    const running = this.#flights.get(resolved.commit);
    if (running !== undefined) return running;
    const flight = this.#tail.then(async () => {
      if (this.#current?.commits.has(resolved.commit)) return;
      await this.#fetch(resolved, fetchInto);
    });
    this.#tail = flight.catch(() => undefined);
    const done = flight.finally(() => this.#flights.delete(resolved.commit));
    // Every waiter may have left; the failure is not unhandled then.
    done.catch(() => undefined);
    this.#flights.set(resolved.commit, done);
    return done;
  }

  async #fetch(resolved: Resolved, fetchInto: FetchInto): Promise<void> {
    const { growthFactor, growthFloorBytes, maxFetches } = this.#context.limits;
    const current = this.#current;
    const outgrown =
      current &&
      (current.fetches >= maxFetches || current.bytes > Math.max(current.cloneBytes * growthFactor, growthFloorBytes));
    if (!current || outgrown) return this.#clone(resolved, fetchInto);
    try {
      await this.#grow(current, resolved, fetchInto);
    } catch (error) {
      if (!(error instanceof PolicyError) || error.reason !== 'RepositoryTooLarge') throw error;
      // Old commits fill the mirror; the new one alone may fit.
      await this.discard();
      await this.#clone(resolved, fetchInto);
    }
  }

  async #grow(current: Generation, resolved: Resolved, fetchInto: FetchInto): Promise<void> {
    try {
      await resetConfig(current.dir);
      await this.#receive(current.dir, resolved, fetchInto);
      current.fetches += 1;
      current.bytes = await sizeOf(current.dir);
      await this.#confirm(current, resolved);
    } catch (error) {
      if (await hasRemains(current.dir)) {
        this.#context.log.info({ mirror: this.#name }, 'a fetch ended half-way: its mirror is discarded');
        await this.discard();
      }
      throw error;
    }
  }

  async #clone(resolved: Resolved, fetchInto: FetchInto): Promise<void> {
    const { dir, next, gitPath, clock, generations } = this.#context;
    const number = next();
    const temporary = join(dir, `tmp-${number}`);
    try {
      await layOut(temporary);
      await this.#receive(temporary, resolved, fetchInto);
      const final = join(dir, `${this.#name}-${number}`);
      await rename(temporary, final);
      const fresh: Generation = new Generation(final, gitPath, clock, () => generations.delete(fresh));
      generations.add(fresh);
      fresh.bytes = await sizeOf(final);
      fresh.cloneBytes = fresh.bytes;
      await this.#adopt(fresh, resolved);
    } catch (error) {
      await remove(temporary);
      throw error;
    }
  }

  async #adopt(fresh: Generation, resolved: Resolved): Promise<void> {
    try {
      await this.#confirm(fresh, resolved);
    } catch (error) {
      await fresh.destroy();
      throw error;
    }
    const old = this.#current;
    this.#current = fresh;
    await old?.retire();
  }

  async #confirm(generation: Generation, { commit, fetchRef }: Resolved): Promise<void> {
    const object = await generation.objects.info(commit, this.#context.closing);
    if (object?.type === 'commit') {
      generation.commits.add(commit);
      return;
    }
    if (object) throw stalled('RefInvalid', `${commit} is a ${object.type} and no commit: correct spec.ref.commit`);
    throw retry('RefNotFound', `${fetchRef} moved while it was fetched: the operator tries again by itself`);
  }

  /** By id, so that a branch that moves meanwhile changes nothing; by name where the server does not hand out ids. */
  async #receive(dir: string, { commit, fetchRef }: Resolved, fetchInto: FetchInto): Promise<void> {
    const target = `refs/mirror/${commit}`;
    const guarded = (source: string) => this.#guarded(dir, (signal) => fetchInto(dir, source, target, signal));
    try {
      await guarded(commit);
    } catch (error) {
      const refused = error instanceof PolicyError && error.reason === 'RefNotFound';
      if (!refused || fetchRef === commit) throw error;
      await guarded(fetchRef);
    }
  }

  /** Ends a fetch whose mirror outgrows the limit while it is being received. */
  async #guarded(dir: string, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { closing, clock, limits } = this.#context;
    const controller = new AbortController();
    const signal = AbortSignal.any([closing, controller.signal]);
    let cancel: () => void = () => undefined;
    const check = async () => {
      const bytes = await sizeOf(dir);
      if (bytes > limits.repositoryBytes) controller.abort(tooLarge(limits.repositoryBytes));
      else if (!controller.signal.aborted) cancel = clock.after(WATCH_MS, () => void check());
    };
    cancel = clock.after(WATCH_MS, () => void check());
    try {
      await run(signal);
      if ((await sizeOf(dir)) > limits.repositoryBytes) throw tooLarge(limits.repositoryBytes);
    } finally {
      cancel();
      // Ends a check that is in the middle of measuring.
      controller.abort();
    }
  }
}

function tooLarge(limit: number): PolicyError {
  const mib = Math.floor(limit / (1024 * 1024));
  return stalled(
    'RepositoryTooLarge',
    `one commit of the repository needs more than ${mib} MiB: move large files out of it, or raise the operator's limit`,
  );
}
