import { SECRETS } from '../api/resources.ts';
import type { Clock } from '../base/clock.ts';
import { PolicyError } from '../base/errors.ts';
import type { KubeApi } from '../kube/types.ts';
import { type TokenSecret, tokenOf } from './secret.ts';

/** A rotated Secret counts after this time. */
const TTL_MS = 10_000;
/** Reads of all Secrets together: so many at once, and after that one per `REFILL_MS`. */
const BURST = 20;
const REFILL_MS = 100;

/** A token, or why there is none. */
export type Token = { token: string } | { missing: string };

/** Too many different Secrets were asked for at once. */
export class TooManyReads extends Error {
  override readonly name = 'TooManyReads';
}

interface Entry {
  at: number;
  token: Promise<Token>;
}

/**
 * Reads webhook tokens by GET on use. A flood of deliveries never becomes a flood of reads: an answer, also that there is no
 * token, counts for ten seconds, equal questions share one GET, and all together are bounded.
 */
export class TokenReader {
  readonly #api: Pick<KubeApi, 'get'>;
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  #left = BURST;
  #refilledAt: number;

  constructor(api: Pick<KubeApi, 'get'>, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
    this.#refilledAt = clock.monotonic();
  }

  /** Rejects with TooManyReads, or with the KubeError of the read, which is not kept. */
  async read(namespace: string, name: string, signal: AbortSignal): Promise<Token> {
    const key = `${namespace}/${name}`;
    const now = this.#clock.monotonic();
    const known = this.#entries.get(key);
    if (known && now - known.at < TTL_MS) return await known.token;
    this.#take(now);
    this.#forgetOld(now);
    const entry: Entry = { at: now, token: this.#get(namespace, name, signal) };
    this.#entries.set(key, entry);
    try {
      return await entry.token;
    } catch (error) {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
      throw error;
    }
  }

  async #get(namespace: string, name: string, signal: AbortSignal): Promise<Token> {
    const secret = await this.#api.get<TokenSecret>(SECRETS, namespace, name, signal);
    if (!secret) return { missing: `Secret "${name}" not found` };
    try {
      return { token: tokenOf(secret) };
    } catch (error) {
      if (error instanceof PolicyError) return { missing: error.message };
      throw error;
    }
  }

  #take(now: number): void {
    const refill = Math.floor((now - this.#refilledAt) / REFILL_MS);
    if (refill > 0) {
      this.#left = Math.min(BURST, this.#left + refill);
      this.#refilledAt += refill * REFILL_MS;
    }
    if (this.#left === 0) throw new TooManyReads('too many webhook Secrets were asked for at once');
    this.#left--;
  }

  #forgetOld(now: number): void {
    for (const [key, { at }] of this.#entries) if (now - at >= TTL_MS) this.#entries.delete(key);
  }
}
