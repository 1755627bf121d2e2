import { createHash } from 'node:crypto';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { waiting } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { type Observe, unobserved } from '../base/observe.ts';
import { fetchVariables, remove } from './disk.ts';
import { checkHosts, credentialHash } from './environment.ts';
import type { Generation } from './generation.ts';
import { fetch, lsRemote } from './git.ts';
import { DEFAULT_GIT_LIMITS, type GitLimits } from './limits.ts';
import { type FetchInto, Mirror, type MirrorContext } from './mirror.ts';
import type { RefSpec, Remote, Resolved, TreeReader, TreeSource } from './port.ts';
import type { ProxySettings } from './proxy.ts';
import { MirrorReader } from './reader.ts';
import { isOid, parseLsRemote, parseRef, patternsOf, pickRef, refNameProblem } from './refs.ts';
import { RemoteCalls } from './remotecall.ts';
import { parseUrl, type RemoteUrl } from './url.ts';
import { waitFor } from './wait.ts';

/** What a GitTreeSource needs. */
export interface GitTreeSourceOptions {
  /** A directory of its own, swept at the first use; nobody else may write there. */
  dir: string;
  clock: Clock;
  log: Logger;
  /** The git program; a name is looked for in the usual directories. */
  gitPath?: string;
  limits?: Partial<GitLimits>;
  /** Proxies for remotes without a proxy Secret of their own. */
  proxies?: ProxySettings | undefined;
  /** PEM text of the authorities that count where a Secret brings none; undefined: those that Git comes with. */
  authorities?: string | undefined;
  /** Takes note of every Git process that talks to a remote: `ls-remote` or `fetch`. */
  observe?: Observe;
}

/** Only names that this class gives are ever removed, so that a wrong `dir` in the configuration costs nothing. */
const OWN_NAME = /^(?:tmp-\d+|call-[A-Za-z0-9]{6}|[0-9a-f]{64}-\d+|authorities\.pem)$/;
const AUTHORITIES = 'authorities.pem';
/** Between two sweeps, however soon a mirror may go. */
const SWEEP_PAUSE_MS = 1_000;

const mirrorName = (url: RemoteUrl, remote: Pick<Remote, 'credential'>) =>
  createHash('sha256')
    .update(`${url.key}\0${credentialHash(remote.credential)}`)
    .digest('hex');

/** TreeSource over Git: https, http and ssh remotes, mirrored in bare shallow repositories below `dir`. */
export class GitTreeSource implements TreeSource {
  readonly #options: GitTreeSourceOptions;
  readonly #context: MirrorContext;
  readonly #limits: GitLimits;
  readonly #closing = new AbortController();
  readonly #mirrors = new Map<string, Mirror>();
  readonly #calls: RemoteCalls;
  #ready: Promise<void> | undefined;
  #cancelSweep: () => void = () => undefined;

  constructor(options: GitTreeSourceOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_GIT_LIMITS, ...options.limits };
    let number = 0;
    this.#context = {
      dir: options.dir,
      gitPath: options.gitPath ?? 'git',
      clock: options.clock,
      log: options.log,
      limits: this.#limits,
      closing: this.#closing.signal,
      generations: new Set(),
      next: () => ++number,
    };
    this.#calls = new RemoteCalls({
      ...this.#context,
      processes: this.#limits.processes,
      proxies: options.proxies,
      caFile: options.authorities && join(options.dir, AUTHORITIES),
    });
  }

  async resolve(remote: Remote, ref: RefSpec, signal: AbortSignal): Promise<Resolved> {
    const url = parseUrl(remote.url);
    const query = parseRef(ref);
    if (query.kind === 'commit') return pickRef(query, { refs: new Map() });
    await this.#prepare();
    const request = this.#calls.run(remote, { ...url, path: '' }, {}, signal, (call, inner) => {
      const run = () => lsRemote(call, patternsOf(query), this.#limits.lsRemoteBytes, inner);
      return this.#observe({ system: 'git', name: 'ls-remote' }, run);
    });
    // The caller need not stand in the queue of processes to the end.
    const output = await waitFor(request, signal);
    return pickRef(query, parseLsRemote(output));
  }

  async open(remote: Remote, resolved: Resolved, signal: AbortSignal): Promise<TreeReader> {
    const url = checked(remote, resolved);
    await this.#prepare();
    const mirror = this.#mirrorOf(url, remote);
    const take = (generation: Generation) => this.#reader(mirror, generation, resolved.commit);
    const reader = await mirror.obtain(resolved, this.#fetchInto(url, remote), take, signal);
    await this.#makeRoom(mirror);
    return reader;
  }

  async openCached(remote: Remote, commit: string, signal: AbortSignal): Promise<TreeReader | undefined> {
    signal.throwIfAborted();
    const url = checked(remote, { commit, fetchRef: commit });
    const mirror = this.#mirrors.get(mirrorName(url, remote));
    const generation = mirror?.holding(commit);
    return mirror && generation ? this.#reader(mirror, generation, commit) : undefined;
  }

  retain(remotes: Iterable<Pick<Remote, 'url' | 'credential'>>): void {
    const named = new Set<string>();
    for (const remote of remotes) {
      try {
        named.add(mirrorName({ ...parseUrl(remote.url), path: '' }, remote));
      } catch {
        // An address that is refused has no mirror.
      }
    }
    const now = this.#options.clock.monotonic();
    for (const [name, mirror] of this.#mirrors) {
      mirror.unnamedSince = named.has(name) ? undefined : (mirror.unnamedSince ?? now);
    }
    this.#sweep();
  }

  async close(): Promise<void> {
    this.#closing.abort(new DOMException('the operator is stopping', 'AbortError'));
    this.#cancelSweep();
    await Promise.all([...this.#mirrors.values()].map((mirror) => mirror.settled()));
    this.#mirrors.clear();
    await Promise.all([...this.#context.generations].map((generation) => generation.destroy()));
    if (this.#ready !== undefined) await removeOwn(this.#options.dir);
  }

  #reader(mirror: Mirror, generation: Generation, commit: string): TreeReader {
    return new MirrorReader(generation, commit, () => mirror.discard(generation));
  }

  #mirrorOf(url: RemoteUrl, remote: Remote): Mirror {
    const name = mirrorName(url, remote);
    let mirror = this.#mirrors.get(name);
    if (!mirror) {
      mirror = new Mirror(this.#context, name);
      this.#mirrors.set(name, mirror);
    }
    return mirror;
  }

  get #observe(): Observe {
    return this.#options.observe ?? unobserved;
  }

  #fetchInto(url: RemoteUrl, remote: Remote): FetchInto {
    return async (dir, source, target, signal) => {
      await this.#calls.run(remote, url, fetchVariables(dir), signal, (call, inner) => {
        const what = { source, target, blobLimit: this.#limits.blobBytes + 1 };
        return this.#observe({ system: 'git', name: 'fetch' }, () => fetch({ ...call, cwd: dir }, what, inner));
      });
    };
  }

  async #prepare(): Promise<void> {
    this.#closing.signal.throwIfAborted();
    this.#ready ??= prepareDirectory(this.#options.dir, this.#options.authorities);
    try {
      await this.#ready;
    } catch (error) {
      this.#ready = undefined;
      throw error;
    }
  }

  /** The least recently used mirrors go until the rest fits; the one just opened stays. */
  async #makeRoom(keep: Mirror): Promise<void> {
    const byAge = [...this.#mirrors].sort(([, a], [, b]) => a.usedAt - b.usedAt);
    let total = byAge.reduce((sum, [, mirror]) => sum + mirror.bytes, 0);
    for (const [name, mirror] of byAge) {
      if (total <= this.#limits.diskBytes) return;
      if (mirror === keep || mirror.busy) continue;
      total -= mirror.bytes;
      this.#mirrors.delete(name);
      this.#options.log.info({ mirror: name }, 'mirror removed: the disk limit is reached');
      await this.#discard(name, mirror);
    }
  }

  /** What cannot be removed now goes at the next start. */
  async #discard(name: string, mirror: Mirror): Promise<void> {
    try {
      await mirror.discard();
    } catch (error) {
      this.#options.log.warn({ mirror: name, err: error }, 'mirror not removed');
    }
  }

  #sweep(): void {
    this.#cancelSweep();
    const now = this.#options.clock.monotonic();
    let next = Number.POSITIVE_INFINITY;
    for (const [name, mirror] of this.#mirrors) {
      if (mirror.unnamedSince === undefined) continue;
      const left = mirror.unnamedSince + this.#limits.graceMs - now;
      if (left > 0 || mirror.busy) {
        next = Math.min(next, Math.max(left, SWEEP_PAUSE_MS));
        continue;
      }
      this.#mirrors.delete(name);
      void this.#discard(name, mirror);
    }
    if (Number.isFinite(next)) this.#cancelSweep = this.#options.clock.after(next, () => this.#sweep());
  }
}

/** The address and the ids are checked again here: they end up in a command line. */
function checked(remote: Remote, { commit, fetchRef }: Pick<Resolved, 'commit' | 'fetchRef'>): RemoteUrl {
  const url = { ...parseUrl(remote.url), path: '' };
  if (!isOid(commit) || (fetchRef !== commit && refNameProblem(fetchRef))) {
    throw waiting('RefInvalid', `"${commit}" is no full commit id or "${fetchRef}" no ref name: correct spec.ref`);
  }
  if (remote.credential) checkHosts(url, remote.credential);
  return url;
}

async function prepareDirectory(dir: string, authorities: string | undefined): Promise<void> {
  await mkdir(join(dir, 'home'), { recursive: true, mode: 0o700 });
  await removeOwn(dir);
  if (authorities !== undefined) await writeFile(join(dir, AUTHORITIES), authorities, { mode: 0o600 });
}

async function removeOwn(dir: string): Promise<void> {
  for (const name of await readdir(dir)) if (OWN_NAME.test(name)) await remove(join(dir, name));
}
