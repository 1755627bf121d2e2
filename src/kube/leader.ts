import { type Clock, systemClock } from '../base/clock.ts';
import { withDeadline } from '../base/deadline.ts';
import { messageOf } from '../base/errors.ts';
import { type Logger, silentLogger } from '../base/log.ts';
import { hasCode, LeaseLost } from './errors.ts';
import { freeIn, held, LEASES, type Lease, type LeaseSpec, type Observation, observe, released } from './lease.ts';
import type { KubeApi } from './types.ts';

export interface LeaderOptions {
  /** A client of its own: renewals must not queue behind the controllers' calls. */
  api: KubeApi;
  namespace: string;
  name: string;
  /** Unique per process: pod name and a random part. */
  identity: string;
  /** How long others wait for a silent holder. Milliseconds; 15 s by default. */
  leaseMs?: number;
  /** How long a holder believes in its lease without a renewal. 10 s by default. */
  renewMs?: number;
  /** Pause between two tries. 2 s by default. */
  retryMs?: number;
  /** How long the work may take to stop before the lease is released, milliseconds. */
  graceMs?: number;
  clock?: Clock;
  logger?: Logger;
  random?: () => number;
}

/**
 * Leader election over a Lease. Times are this process's own monotonic clock: neither clock skew nor a stopped process
 * (SIGSTOP) makes two leaders, as long as the working client has `check` as its fence.
 */
export class LeaderElection {
  readonly #options: LeaderOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #leaseMs: number;
  readonly #renewMs: number;
  readonly #retryMs: number;
  #seen: Observation | undefined;
  /** Monotonic time before the last successful renewal was sent; undefined while not the leader. */
  #renewedAt: number | undefined;

  constructor(options: LeaderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#logger = (options.logger ?? silentLogger).child({ lease: options.name });
    this.#leaseMs = options.leaseMs ?? 15_000;
    this.#renewMs = options.renewMs ?? 10_000;
    this.#retryMs = options.retryMs ?? 2_000;
    if (!(this.#retryMs < this.#renewMs && this.#renewMs < this.#leaseMs)) {
      throw new TypeError('leader election needs retryMs < renewMs < leaseMs');
    }
  }

  /** True only while the last renewal is younger than the renew deadline; asks the clock each time. */
  isLeader(): boolean {
    return this.#renewedAt !== undefined && this.#clock.monotonic() - this.#renewedAt < this.#renewMs;
  }

  /** Throws LeaseLost unless `isLeader`; the fence of the client that the work writes with. */
  check(): void {
    if (!this.isLeader()) throw new LeaseLost('not the leader (any more); nothing is written');
  }

  /**
   * Waits for the lease, then runs `lead` under a signal that aborts when the lease is lost or `signal` aborts.
   * Resolves after an abort or when `lead` ends, the lease released; rejects with LeaseLost, or with the error of `lead`.
   */
  async run(signal: AbortSignal, lead: (signal: AbortSignal) => Promise<void>): Promise<void> {
    await this.#acquire(signal);
    if (!this.isLeader()) {
      if (signal.aborted) return;
      throw new LeaseLost('the lease ran out before the work began');
    }
    this.#logger.info({ identity: this.#options.identity }, 'leading');
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    const work = lead(stop.signal).finally(() => stop.abort(new Error('the work has ended')));
    // Awaited below; a failure before that must not count as unhandled.
    work.catch(() => undefined);
    try {
      await this.#hold(stop.signal);
      await this.#finish(work);
      await this.#release();
    } catch (error) {
      // After a loss the work is stopped, not waited for: the process ends.
      stop.abort(error);
      if (!(error instanceof LeaseLost)) await this.#release();
      throw error;
    } finally {
      this.#renewedAt = undefined;
      signal.removeEventListener('abort', onAbort);
    }
  }

  async #acquire(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (await this.#tryAcquire(signal)) return;
      } catch (error) {
        if (signal.aborted) return;
        this.#logger.warn(`cannot read or take the lease, trying again: ${messageOf(error)}`);
      }
      await this.#pause(signal);
    }
  }

  async #tryAcquire(signal: AbortSignal): Promise<boolean> {
    const { api, namespace, name, identity } = this.#options;
    const lease = await this.#call(signal, (s) => api.get<Lease>(LEASES, namespace, name, s));
    if (!lease) return this.#claim(undefined, signal);
    this.#seen = observe(this.#seen, lease, this.#clock.monotonic());
    if (freeIn(this.#seen, identity, this.#leaseMs, this.#clock.monotonic()) > 0) return false;
    return this.#claim(lease, signal);
  }

  /** Writes ourselves into exactly that version of the lease. False: somebody else wrote first. */
  async #claim(lease: Lease | undefined, signal: AbortSignal): Promise<boolean> {
    const spec = held(lease?.spec, this.#options.identity, this.#leaseMs, this.#clock.now());
    const sentAt = this.#clock.monotonic();
    try {
      const written = await this.#call(signal, (s) => this.#write(lease, spec, s));
      this.#seen = observe(this.#seen, written, this.#clock.monotonic());
      this.#renewedAt = sentAt;
      return true;
    } catch (error) {
      if (hasCode(error, 409)) return false;
      throw error;
    }
  }

  #write(lease: Lease | undefined, spec: LeaseSpec, signal: AbortSignal): Promise<Lease> {
    const { api, namespace, name } = this.#options;
    if (!lease) {
      const metadata = { name, namespace };
      return api.create<Lease>(
        LEASES,
        namespace,
        { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec },
        signal,
      );
    }
    const { uid, resourceVersion } = lease.metadata;
    const body = { metadata: { uid, resourceVersion }, spec };
    return api.patch<Lease>(LEASES, namespace, name, { kind: 'merge', body }, signal);
  }

  /** Renews until `signal` aborts (resolves) or the lease is lost (rejects with LeaseLost). */
  async #hold(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#pause(signal);
      if (!this.isLeader()) throw new LeaseLost('the lease was not renewed in time; another instance may lead');
      if (signal.aborted) return;
      const left = (this.#renewedAt ?? 0) + this.#renewMs - this.#clock.monotonic();
      try {
        await withDeadline(signal, Math.max(1, left), (s) => this.#renew(s));
      } catch (error) {
        if (error instanceof LeaseLost) throw error;
        if (signal.aborted) return;
        this.#logger.warn(`lease not renewed, trying again: ${messageOf(error)}`);
      }
    }
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { api, namespace, name, identity } = this.#options;
    if (await this.#claim(this.#seen?.lease, signal)) return;
    // Somebody wrote it: a person's edit leaves us the holder, a new holder ends us.
    const lease = await api.get<Lease>(LEASES, namespace, name, signal);
    if (lease?.spec?.holderIdentity !== identity) {
      this.#renewedAt = undefined;
      throw new LeaseLost(`the lease is held by "${lease?.spec?.holderIdentity ?? 'nobody'}"`);
    }
    this.#seen = observe(this.#seen, lease, this.#clock.monotonic());
    if (!(await this.#claim(lease, signal))) throw new Error('the lease changed twice');
  }

  /** Waits for stopped work, at most the grace and never past the lease. Rejects with the work's error. */
  async #finish(work: Promise<void>): Promise<void> {
    const left = (this.#renewedAt ?? 0) + this.#renewMs - this.#clock.monotonic();
    const { promise, reject } = Promise.withResolvers<never>();
    const late = () => reject(new LeaseLost('the work did not stop in time; the lease is left to expire'));
    const cancel = this.#clock.after(Math.max(0, Math.min(left, this.#options.graceMs ?? 5_000)), late);
    try {
      await Promise.race([work, promise]);
    } finally {
      cancel();
    }
  }

  /** Gives the lease away, so that the next instance need not wait for it. Best effort. */
  async #release(): Promise<void> {
    if (!this.isLeader() || !this.#seen) return;
    const { lease } = this.#seen;
    this.#renewedAt = undefined;
    try {
      const own = new AbortController();
      await this.#call(own.signal, (s) => this.#write(lease, released(lease.spec, this.#clock.now()), s));
    } catch (error) {
      this.#logger.info(`lease not released, it will expire: ${messageOf(error)}`);
    }
  }

  /** A request must end well before the renew deadline. */
  #call<T>(signal: AbortSignal, fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withDeadline(signal, this.#renewMs / 2, fn);
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const jitter = 1 + 0.2 * (this.#options.random ?? Math.random)();
    try {
      await this.#clock.sleep(this.#retryMs * jitter, signal);
    } catch {
      // Aborted; the caller's loop looks at its signal.
    }
  }
}
