import type { Clock } from '../../base/clock.ts';
import { messageOf, PolicyError, waiting } from '../../base/errors.ts';
import type { Registry } from '../../build/port.ts';

/** The store's part of the check. */
export interface WriteCheck {
  acceptsAnonymousWrites(signal: AbortSignal): Promise<boolean>;
}

interface PreflightOptions {
  registry: Pick<Registry, 'host' | 'ping' | 'acceptsAnonymousWrites'>;
  store: WriteCheck;
  /** Build although everybody may write; for test installations. */
  allowAnonymousWrites: boolean;
  clock: Clock;
}

/** How long a good verdict counts, and a bad one: many Skills ask, and a person who put it right does not want to wait. */
const GOOD_MS = 300_000;
const BAD_MS = 1_000;

/** Before a build: registry and bucket answer, and neither lets everybody write. One check at a time serves all Skills. */
export class Preflight {
  readonly #options: PreflightOptions;
  #verdict: { until: number; error: PolicyError | undefined } | undefined;
  #running: Promise<PolicyError | undefined> | undefined;

  constructor(options: PreflightOptions) {
    this.#options = options;
  }

  /** What forbids builds at present; undefined: nothing. `asked`: a person wants to know now, so no bad verdict is taken as known. */
  async problem(repository: string, asked: boolean, signal: AbortSignal): Promise<PolicyError | undefined> {
    const now = this.#options.clock.monotonic();
    const known = this.#verdict && now < this.#verdict.until ? this.#verdict : undefined;
    if (known && !(asked && known.error)) return known.error;
    this.#running ??= this.#check(repository, signal).finally(() => {
      this.#running = undefined;
    });
    const error = await this.#running;
    const until = this.#options.clock.monotonic() + (error ? BAD_MS : GOOD_MS);
    this.#verdict = { until, error };
    return error;
  }

  async #check(repository: string, signal: AbortSignal): Promise<PolicyError | undefined> {
    const { registry, store, allowAnonymousWrites } = this.#options;
    try {
      await registry.ping(signal);
      if (allowAnonymousWrites) return undefined;
      if (await registry.acceptsAnonymousWrites(repository, signal)) {
        return waiting(
          'RegistryAnonymousWrites',
          `the registry ${registry.host} accepts pushes without a credential, so nobody can trust its images; turn that off, or set build.allowAnonymousWrites for a test installation`,
        );
      }
      if (await store.acceptsAnonymousWrites(signal)) {
        return waiting(
          'StoreAnonymousWrites',
          'the bucket accepts writes without a key, so nobody can trust its packages; correct its policy, or set build.allowAnonymousWrites for a test installation',
        );
      }
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return error instanceof PolicyError ? error : waiting('RegistryUnavailable', messageOf(error));
    }
  }
}
