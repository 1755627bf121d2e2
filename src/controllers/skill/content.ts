import { effectiveSkill, gitLocation } from '../../api/defaults.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import type { Skill } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import { type PolicyError, stalled, waiting } from '../../base/errors.ts';
import { toPolicyError } from '../../kube/errors.ts';
import { type Key, keyOf, type Store } from '../../kube/types.ts';
import type { Remote, Resolved, TreeReader, TreeSource } from '../../marketplace/port.ts';
import { readSkillTree } from '../../marketplace/skilltree.ts';
import type { SkillTree } from '../../protocol/types.ts';
import { type GitHosts, HostBusy, type Visit } from '../githosts.ts';
import type { Remotes } from '../remotes.ts';
import { isObserved } from '../requests.ts';
import { resolveInTurn, visitOf } from '../visit.ts';
import { Looks } from './looks.ts';

/** Which content a Skill points at, and how to come by it. */
export interface Target {
  commit: string;
  /** Id of the tree of the skill's directory; undefined: learnt when it is opened. */
  tree: string | undefined;
  /** For the condition Fetched of a Skill with its own source. */
  revision: string;
  /** How long ago the remote of a Skill with its own source was asked, milliseconds. */
  ageMs?: number;
  read(signal: AbortSignal): Promise<{ commit: string; tree: string; files: SkillTree }>;
}

/** What reading content needs. */
export interface ContentDeps {
  sources: Store<MarketplaceSource>;
  trees: TreeSource;
  remotes: Remotes;
  hosts: GitHosts;
  clock: Clock;
  /** Puts a key back into the queue at once. */
  wake: (key: Key) => void;
}

type Git = NonNullable<Skill['spec']['source']['git']>;

const REVISION_COMMIT = /@?sha1:([0-9a-f]{40})$/;

/** Finds and reads the content of Skills, generated ones and those with a Git source of their own. */
export class SkillContent {
  readonly #deps: ContentDeps;
  readonly #looks: Looks;

  constructor(deps: ContentDeps) {
    this.#deps = deps;
    this.#looks = new Looks(deps.clock);
  }

  /** The pass over the Skill failed, or it is gone: the next one asks its remote again. */
  forget(key: Key): void {
    this.#looks.forget(key);
  }

  /**
   * What the Skill points at now. A generated Skill costs nothing; one with its own source costs one ls-remote per interval, change and
   * request. Errors: SourceNotFound, InvalidSpec, HostBusy, and those of Git.
   */
  async target(skill: Skill, signal: AbortSignal): Promise<Target> {
    const { git, marketplaceRef } = skill.spec.source;
    if (git) return this.#own(skill, git, signal);
    const key = `${skill.metadata.namespace}/${marketplaceRef?.name}`;
    const source = this.#deps.sources.get(key);
    if (!source) {
      throw waiting(
        'SourceNotFound',
        `MarketplaceSource "${marketplaceRef?.name}" does not exist in this namespace; apply it, or delete this Skill`,
      );
    }
    const { revision } = skill.spec;
    if (!revision) {
      throw stalled(
        'InvalidSpec',
        'spec.revision is missing: Skills of a marketplace are made by its MarketplaceSource; to apply a Skill yourself set spec.source.git',
      );
    }
    const { commit, tree } = revision;
    return { commit, tree, revision: `sha1:${commit}`, read: (s) => this.#readGenerated(skill, source, revision, s) };
  }

  async #own(skill: Skill, git: Git, signal: AbortSignal): Promise<Target> {
    const { resolved, ageMs } = await this.#lookAt(skill, git, signal);
    // What was observed under another spec may have been another directory.
    const observed = isObserved(skill) ? skill.status?.observed : undefined;
    const same = observed?.commit === resolved.commit ? observed.tree : undefined;
    return {
      commit: resolved.commit,
      tree: same,
      revision: resolved.revision,
      ageMs,
      read: (s) => this.#readOwn(skill, git, resolved, s),
    };
  }

  async #lookAt(skill: Skill, git: Git, signal: AbortSignal): Promise<{ resolved: Resolved; ageMs: number }> {
    const known = this.#looks.last(skill, effectiveSkill(skill.spec).intervalMs);
    if (known) return known;
    const resolved = await this.#deps.hosts.run(this.#visit(skill, git.url, git.secretRef), async (answered) => {
      const remote = await this.#remoteOf(skill, git, true, signal);
      return resolveInTurn(this.#deps.trees, remote, git.ref, answered, signal);
    });
    this.#looks.learn(skill, resolved);
    return { resolved, ageMs: 0 };
  }

  #remoteOf(skill: Skill, git: Git, fresh: boolean, signal: AbortSignal): Promise<Remote> {
    const { url, secretRef, proxySecretRef } = git;
    const { timeoutMs } = effectiveSkill(skill.spec);
    const address = { url, secretRef, proxySecretRef, timeoutMs, namespace: skill.metadata.namespace ?? '' };
    return this.#deps.remotes.ofSkill(keyOf(skill), address, fresh, signal);
  }

  #visit(skill: Skill, url: string, secretRef: { name: string } | undefined): Visit {
    return visitOf(skill, url, secretRef, this.#deps.wake);
  }

  /** A reader on the commit; a turn at the host is only for what the mirror lacks. */
  async #open(visit: Visit, remote: Remote, resolved: Resolved, signal: AbortSignal): Promise<TreeReader> {
    const { trees, hosts } = this.#deps;
    const held = await trees.openCached(remote, resolved.commit, signal);
    if (held) return held;
    return hosts.run(visit, async (answered) => {
      const reader = await trees.open(remote, resolved, signal);
      answered();
      return reader;
    });
  }

  async #readOwn(skill: Skill, git: Git, resolved: Resolved, signal: AbortSignal) {
    const remote = await this.#remoteOf(skill, git, false, signal);
    await using reader = await this.#open(this.#visit(skill, git.url, git.secretRef), remote, resolved, signal);
    const { path } = skill.spec;
    const found = await reader.tree(path, signal);
    if (!found) {
      throw waiting(
        'PathNotFound',
        `${resolved.revision} has no directory ${path}; correct spec.path, or push the directory`,
      );
    }
    const files = await readSkillTree(reader, { tree: found.oid, path }, signal);
    return { commit: resolved.commit, tree: found.oid, files };
  }

  async #readGenerated(
    skill: Skill,
    source: MarketplaceSource,
    revision: { commit: string; tree: string },
    signal: AbortSignal,
  ) {
    const { remote } = await this.#deps.remotes.ofSource(source, false, signal);
    await using reader = await this.#readerWith(skill, remote, source, revision, signal);
    const files = await readSkillTree(reader, { tree: revision.tree, path: skill.spec.path }, signal);
    return { ...revision, files };
  }

  /**
   * A reader whose mirror holds the tree: the commit of the Skill when it is there already, else the newest commit of the source
   * (the tree has not moved since), and only then the old commit itself from the remote.
   */
  async #readerWith(
    skill: Skill,
    remote: Remote,
    source: MarketplaceSource,
    { commit, tree }: { commit: string; tree: string },
    signal: AbortSignal,
  ): Promise<TreeReader> {
    const head = REVISION_COMMIT.exec(source.status?.revision ?? '')?.[1];
    const visit = this.#visit(skill, gitLocation(source.spec)?.url ?? '', source.spec.secretRef);
    const attempts = [
      () => this.#deps.trees.openCached(remote, commit, signal),
      ...(head && head !== commit ? [() => this.#open(visit, remote, atCommit(head), signal)] : []),
      () => this.#open(visit, remote, atCommit(commit), signal),
    ];
    let failure: PolicyError | undefined;
    for (const attempt of attempts) {
      const reader = await attempt().catch((error: unknown) => {
        failure = absence(error, signal);
        return undefined;
      });
      if (reader && (await reader.treeByOid(tree, signal))) return reader;
      await reader?.[Symbol.asyncDispose]();
    }
    throw waiting(
      'TreeGone',
      `commit ${commit} can no longer be fetched (its history was rewritten or the repository replaced); the next pass of MarketplaceSource "${source.metadata.name}" points at what is there now`,
      { cause: failure },
    );
  }
}

/** Only "there is no such commit" lets the next attempt change anything; everything else is thrown. */
function absence(error: unknown, signal: AbortSignal): PolicyError {
  signal.throwIfAborted();
  if (error instanceof HostBusy) throw error;
  const failure = toPolicyError(error);
  if (failure.reason !== 'RefNotFound') throw failure;
  return failure;
}

const atCommit = (commit: string): Resolved => ({ commit, revision: `sha1:${commit}`, fetchRef: commit });
