import type { Clock } from '../base/clock.ts';
import { PolicyError } from '../base/errors.ts';
import type { Reason } from '../base/reasons.ts';
import type { Key } from '../kube/types.ts';
import { parseUrl } from '../marketplace/url.ts';

/** How much the operator asks of one Git host. */
export interface HostLimits {
  /** Visits at once. */
  perHost: number;
  /** Least time between the starts of two visits, milliseconds. */
  minIntervalMs: number;
}

/** Who wants to talk to which host. */
export interface Visit {
  url: string;
  /** Stands for the credential: hosts limit callers, not addresses. */
  caller: string;
  key: Key;
  /** Somebody waits for it: it goes before those that only poll. */
  urgent: boolean;
  /** Puts the key back into its queue. */
  wake: (key: Key) => void;
}

/** There is no turn at the host now: nothing was tried, nothing is known, and the key is woken when there is one. */
export class HostBusy extends Error {
  override readonly name = 'HostBusy';
  /** When to look again should the wake get lost, milliseconds. */
  readonly lookAgainMs = 15_000;
}

interface Pause {
  error: PolicyError;
  until: number;
  /** Refusals in a row. */
  strikes: number;
}

interface Waiter {
  key: Key;
  wake: (key: Key) => void;
}

interface Host {
  inside: number;
  /** It answered the last time; one that did not, or was never asked, gets one visit at a time. */
  answers: boolean;
  startedAt: number;
  /** By caller. */
  pauses: Map<string, Pause>;
  waiting: { urgent: Map<Key, Waiter>; polling: Map<Key, Waiter> };
  timer: (() => void) | undefined;
}

/** These say nothing about whether the host is alive: nothing reached it. */
const SILENT: ReadonlySet<Reason> = new Set(['GitTimeout', 'GitUnreachable', 'ProxyUnreachable', 'GitRateLimited']);
/** These come from the host, as unwelcome as they are. */
const SPOKEN: ReadonlySet<Reason> = new Set([
  'AuthenticationFailed',
  'RepositoryNotFound',
  'RefNotFound',
  'EmptyRepository',
  'RedirectRefused',
  'TLSVerificationFailed',
  'HostKeyMismatch',
  'HostKeyUnknown',
]);
const FIRST_PAUSE_MS = 60_000;
const MAX_PAUSE_MS = 15 * 60_000;
/** Above so many hosts those that nobody uses are forgotten. */
const MANY = 1_000;

/**
 * Turns at Git hosts, so that a dead or strict one takes a bounded share of the workers: at most `perHost` visits at once, one while the
 * host does not answer, none while it asked to be left alone. Who finds no turn gives its worker back and is woken later.
 */
export class GitHosts {
  readonly #clock: Clock;
  readonly #limits: HostLimits;
  readonly #hosts = new Map<string, Host>();

  constructor(clock: Clock, limits: HostLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /**
   * Runs `work` while it holds a turn; it calls `answered` as soon as the host has said anything.
   * Throws HostBusy where there is none, `GitRateLimited` without asking while the caller was told to wait, and what `work` throws.
   */
  async run<T>(visit: Visit, work: (answered: () => void) => Promise<T>): Promise<T> {
    const name = nameOf(visit.url);
    // The address is refused by whoever uses it, in better words.
    if (name === undefined) return work(() => undefined);
    const host = this.#host(name);
    this.#checkPause(host, visit.caller);
    if (!this.#enter(host, visit)) throw new HostBusy();
    let spoke = false;
    const answered = () => {
      spoke = true;
      host.pauses.delete(visit.caller);
      this.#trust(host);
    };
    try {
      return await work(answered);
    } catch (error) {
      throw this.#learn(host, visit.caller, error, spoke);
    } finally {
      host.inside--;
      this.#wake(host);
    }
  }

  #host(name: string): Host {
    let host = this.#hosts.get(name);
    if (!host) {
      if (this.#hosts.size > MANY) this.#tidy();
      const waiting = { urgent: new Map(), polling: new Map() };
      const startedAt = Number.NEGATIVE_INFINITY;
      host = { inside: 0, answers: false, startedAt, pauses: new Map(), waiting, timer: undefined };
      this.#hosts.set(name, host);
    }
    return host;
  }

  #checkPause(host: Host, caller: string): void {
    const pause = host.pauses.get(caller);
    const left = pause ? pause.until - this.#clock.monotonic() : 0;
    if (pause && left > 0) throw later(pause.error, left);
  }

  #enter(host: Host, { key, urgent, wake }: Visit): boolean {
    const now = this.#clock.monotonic();
    const { urgent: first, polling } = host.waiting;
    if (host.inside >= this.#limit(host) || now - host.startedAt < this.#limits.minIntervalMs) {
      (urgent ? first : polling).set(key, { key, wake });
      this.#arm(host);
      return false;
    }
    first.delete(key);
    polling.delete(key);
    host.inside++;
    host.startedAt = now;
    return true;
  }

  #limit = ({ answers }: Host): number => (answers ? this.#limits.perHost : 1);

  #trust(host: Host): void {
    if (host.answers) return;
    host.answers = true;
    this.#wake(host);
  }

  /** What the failure says about the host; the error as the caller shall see it. */
  #learn(host: Host, caller: string, error: unknown, spoke: boolean): unknown {
    if (!(error instanceof PolicyError)) return error;
    if (SPOKEN.has(error.reason)) this.#trust(host);
    // A slow repository of a host that answers is that repository's matter.
    if (SILENT.has(error.reason) && !spoke) host.answers = false;
    return error.reason === 'GitRateLimited' ? this.#pause(host, caller, error) : error;
  }

  /** As long as the host said; where it said nothing a minute, and twice as long each time. */
  #pause(host: Host, caller: string, error: PolicyError): PolicyError {
    const now = this.#clock.monotonic();
    const before = host.pauses.get(caller);
    // Visits that ended together count once.
    if (before && before.until > now) return later(error, before.until - now);
    const strikes = (before?.strikes ?? 0) + 1;
    const ms = error.retryAfterMs ?? Math.min(FIRST_PAUSE_MS * 2 ** (strikes - 1), MAX_PAUSE_MS);
    host.pauses.set(caller, { error, until: now + ms, strikes });
    return later(error, ms);
  }

  #wake(host: Host): void {
    if (this.#limits.minIntervalMs > 0) {
      this.#arm(host);
      return;
    }
    for (let free = this.#limit(host) - host.inside; free > 0; free--) if (!wakeOne(host)) return;
  }

  /** With a least time between visits one is woken at a time, when it is over. */
  #arm(host: Host): void {
    const { minIntervalMs } = this.#limits;
    if (minIntervalMs === 0 || host.timer || host.inside >= this.#limit(host)) return;
    const wait = Math.max(0, host.startedAt + minIntervalMs - this.#clock.monotonic());
    host.timer = this.#clock.after(wait, () => {
      host.timer = undefined;
      wakeOne(host);
    });
  }

  #tidy(): void {
    const now = this.#clock.monotonic();
    for (const [name, { inside, waiting, pauses, timer }] of this.#hosts) {
      const paused = [...pauses.values()].some(({ until }) => until > now);
      const idle = inside === 0 && waiting.urgent.size + waiting.polling.size === 0;
      if (idle && !paused && !timer) this.#hosts.delete(name);
    }
  }
}

function wakeOne({ waiting: { urgent, polling } }: Host): boolean {
  for (const lane of [urgent, polling]) {
    const next = lane.values().next();
    if (next.done) continue;
    lane.delete(next.value.key);
    next.value.wake(next.value.key);
    return true;
  }
  return false;
}

const later = (error: PolicyError, retryAfterMs: number): PolicyError =>
  new PolicyError(error.policy, error.reason, error.message, { retryAfterMs, cause: error });

function nameOf(url: string): string | undefined {
  try {
    const { host, port } = parseUrl(url);
    return `${host}:${port}`;
  } catch {
    return undefined;
  }
}
