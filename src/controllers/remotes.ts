import { effectiveSource, gitLocation } from '../api/defaults.ts';
import type { MarketplaceSource } from '../api/marketplacesource.ts';
import { stalled } from '../base/errors.ts';
import { type Key, keyOf } from '../kube/types.ts';
import type { Remote, TreeSource } from '../marketplace/port.ts';
import type { CredentialReader, ProxyReader } from './credentials.ts';

/** Where a source of a Git kind lies. */
export interface SourceRemote {
  remote: Remote;
  /** Directory below which plugins/ is expected; '' is the root. */
  root: string;
}

/** The Secrets by which a remote is reached, and their namespace. */
interface Access {
  namespace: string;
  secretRef?: { name: string } | undefined;
  proxySecretRef?: { name: string } | undefined;
}

/** The remotes in use, by the key of the object that names them; tells the mirrors which of them still count. */
export class Remotes {
  readonly #credentials: CredentialReader;
  readonly #proxies: ProxyReader;
  readonly #trees: Pick<TreeSource, 'retain'>;
  readonly #inUse = new Map<string, Remote>();

  constructor(credentials: CredentialReader, proxies: ProxyReader, trees: Pick<TreeSource, 'retain'>) {
    this.#credentials = credentials;
    this.#proxies = proxies;
    this.#trees = trees;
  }

  /** The remote of a source of a Git kind, with its credential. Errors: SecretNotFound, SecretInvalid, InvalidSpec. */
  async ofSource(source: MarketplaceSource, fresh: boolean, signal: AbortSignal): Promise<SourceRemote> {
    const location = gitLocation(source.spec);
    if (!location) throw stalled('InvalidSpec', `type ${source.spec.type} needs its own field below spec; add it`);
    const { timeoutMs } = effectiveSource(source.spec);
    const owner = `source/${keyOf(source)}`;
    const { secretRef, proxySecretRef } = source.spec;
    const from = { namespace: source.metadata.namespace ?? '', secretRef, proxySecretRef };
    const remote = await this.#remote(owner, { ...location, timeoutMs }, from, fresh, signal);
    return { remote, root: location.root };
  }

  /** The remote of a Skill with its own Git source. */
  ofSkill(
    key: Key,
    git: { url: string; timeoutMs: number } & Access,
    fresh: boolean,
    signal: AbortSignal,
  ): Promise<Remote> {
    return this.#remote(`skill/${key}`, git, git, fresh, signal);
  }

  async #remote(
    owner: string,
    address: { url: string; timeoutMs: number },
    from: Access,
    fresh: boolean,
    signal: AbortSignal,
  ): Promise<Remote> {
    const credential = await this.#credentials.read(from.namespace, from.secretRef, { fresh }, signal);
    const proxy = await this.#proxies.read(from.namespace, from.proxySecretRef, { fresh }, signal);
    const remote = { url: address.url, credential, proxy, timeoutMs: address.timeoutMs };
    const before = this.#inUse.get(owner);
    this.#inUse.set(owner, remote);
    // The credential reader hands out the same object until it reads the Secret again.
    if (before?.url !== remote.url || before.credential !== credential) this.#trees.retain(this.#inUse.values());
    return remote;
  }

  /** The object is gone: its mirror goes after the grace, unless another object names the same remote. */
  forget(kind: 'source' | 'skill', key: Key): void {
    if (this.#inUse.delete(`${kind}/${key}`)) this.#trees.retain(this.#inUse.values());
  }
}
