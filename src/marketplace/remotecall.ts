import { join } from 'node:path';
import pLimit from 'p-limit';
import type { Clock } from '../base/clock.ts';
import { PolicyError } from '../base/errors.ts';
import { checkHosts, remoteEnvironment } from './environment.ts';
import type { GitCall } from './git.ts';
import { GitHubAppTokens } from './githubapp.ts';
import type { GitCredential, Remote } from './port.ts';
import { type ProxyRoute, type ProxySettings, proxyFor } from './proxy.ts';
import type { RemoteUrl } from './url.ts';

/** What all calls of one source of trees share. */
export interface RemoteCallsOptions {
  /** A private directory with an empty `home` inside. */
  dir: string;
  gitPath: string;
  clock: Clock;
  /** Git processes at once. */
  processes: number;
  proxies: ProxySettings | undefined;
  /** PEM file of the authorities that count where a Secret brings none. */
  caFile: string | undefined;
  closing: AbortSignal;
}

const MIN_TIMEOUT_MS = 1_000;

/** Runs Git processes that talk to remotes: with their credential, through their proxy, a bounded number at once. */
export class RemoteCalls {
  readonly #options: RemoteCallsOptions;
  readonly #slots: ReturnType<typeof pLimit>;
  readonly #apps: GitHubAppTokens;

  constructor(options: RemoteCallsOptions) {
    this.#options = options;
    this.#slots = pLimit(options.processes);
    this.#apps = new GitHubAppTokens(options.clock, options.closing);
  }

  /** One Git process; its key files live as long as it does. Errors: those of `run`, of the Secrets, and of a GitHub App. */
  async run<T>(
    remote: Remote,
    url: RemoteUrl,
    variables: Record<string, string>,
    signal: AbortSignal,
    run: (call: GitCall, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { gitPath, clock, dir, caFile, closing, proxies } = this.#options;
    const both = AbortSignal.any([signal, closing]);
    const timeoutMs = Math.max(remote.timeoutMs, MIN_TIMEOUT_MS);
    const proxy = proxyFor(url, remote.proxy, proxies);
    const credential = await this.#credential(remote, url, proxy, timeoutMs, both);
    return this.#slots(async () => {
      await using environment = await remoteEnvironment(dir, { remote: url, credential, proxy, caFile }, both);
      const call: GitCall = {
        gitPath,
        clock,
        remote: url,
        env: { ...environment.env, ...variables },
        authenticated: environment.authenticated,
        app: remote.credential?.githubApp !== undefined,
        proxy,
        timeoutMs,
        cwd: join(dir, 'home'),
      };
      try {
        // Awaited here: the key files go when this block ends.
        return await run(call, both);
      } catch (error) {
        this.#learn(remote.credential, error);
        throw error;
      }
    });
  }

  /** The credential as Git takes it: for a GitHub App a token of its installation. */
  async #credential(
    { credential }: Remote,
    remote: RemoteUrl,
    proxy: ProxyRoute | undefined,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<GitCredential | undefined> {
    if (!credential?.githubApp) return credential;
    checkHosts(remote, credential);
    const { githubApp: app, caCert, hosts } = credential;
    const token = await this.#apps.credential({ app, remote, caCert, proxy, timeoutMs }, signal);
    return { ...token, caCert, hosts };
  }

  /** A token that the server does not take any more was revoked, or the installation's repositories changed. */
  #learn(credential: GitCredential | undefined, error: unknown): void {
    const refused =
      error instanceof PolicyError &&
      (error.reason === 'AuthenticationFailed' || error.reason === 'RepositoryNotFound');
    if (refused && credential?.githubApp) this.#apps.forget(credential.githubApp);
  }
}
