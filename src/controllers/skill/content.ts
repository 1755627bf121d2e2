import { effectiveSkill } from '../../api/defaults.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import type { Skill } from '../../api/skill.ts';
import { type PolicyError, stalled, waiting } from '../../base/errors.ts';
import { toPolicyError } from '../../kube/errors.ts';
import { keyOf, type Store } from '../../kube/types.ts';
import type { Remote, Resolved, TreeReader, TreeSource } from '../../marketplace/port.ts';
import { readSkillTree } from '../../marketplace/skilltree.ts';
import type { SkillTree } from '../../protocol/types.ts';
import type { Remotes } from '../remotes.ts';

/** Which content a Skill points at, and how to come by it. */
export interface Target {
  commit: string;
  /** Id of the tree of the skill's directory; undefined: learnt when it is opened. */
  tree: string | undefined;
  /** For the condition Fetched of a Skill with its own source. */
  revision: string;
  read(signal: AbortSignal): Promise<{ commit: string; tree: string; files: SkillTree }>;
}

/** What reading content needs. */
export interface ContentDeps {
  sources: Store<MarketplaceSource>;
  trees: TreeSource;
  remotes: Remotes;
}

/** True when the last whole pass was over the spec as it stands. */
export const isObserved = (skill: Skill): boolean => skill.status?.observedGeneration === skill.metadata.generation;

const REVISION_COMMIT = /@?sha1:([0-9a-f]{40})$/;

/** Finds and reads the content of Skills, generated ones and those with a Git source of their own. */
export class SkillContent {
  readonly #deps: ContentDeps;

  constructor(deps: ContentDeps) {
    this.#deps = deps;
  }

  /**
   * What the Skill points at now. A generated Skill costs nothing; one with its own source costs one ls-remote.
   * Errors: SourceNotFound, InvalidSpec, and those of Git.
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

  async #own(skill: Skill, git: NonNullable<Skill['spec']['source']['git']>, signal: AbortSignal): Promise<Target> {
    const { timeoutMs } = effectiveSkill(skill.spec);
    const { url, secretRef, proxySecretRef } = git;
    const address = { url, secretRef, proxySecretRef, timeoutMs, namespace: skill.metadata.namespace ?? '' };
    const remote = await this.#deps.remotes.ofSkill(keyOf(skill), address, true, signal);
    const resolved = await this.#deps.trees.resolve(remote, git.ref ?? {}, signal);
    // What was observed under another spec may have been another directory.
    const observed = isObserved(skill) ? skill.status?.observed : undefined;
    const same = observed?.commit === resolved.commit ? observed.tree : undefined;
    return {
      commit: resolved.commit,
      tree: same,
      revision: resolved.revision,
      read: (s) => this.#readOwn(skill, remote, resolved, s),
    };
  }

  async #readOwn(skill: Skill, remote: Remote, resolved: Resolved, signal: AbortSignal) {
    await using reader = await this.#deps.trees.open(remote, resolved, signal);
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
    await using reader = await this.#readerWith(remote, source, revision, signal);
    const files = await readSkillTree(reader, { tree: revision.tree, path: skill.spec.path }, signal);
    return { ...revision, files };
  }

  /**
   * A reader whose mirror holds the tree: the commit of the Skill when it is there already, else the newest commit of the source
   * (the tree has not moved since), and only then the old commit itself from the remote.
   */
  async #readerWith(
    remote: Remote,
    source: MarketplaceSource,
    { commit, tree }: { commit: string; tree: string },
    signal: AbortSignal,
  ): Promise<TreeReader> {
    const head = REVISION_COMMIT.exec(source.status?.revision ?? '')?.[1];
    const attempts = [
      () => this.#deps.trees.openCached(remote, commit, signal),
      ...(head && head !== commit ? [() => this.#deps.trees.open(remote, atCommit(head), signal)] : []),
      () => this.#deps.trees.open(remote, atCommit(commit), signal),
    ];
    let failure: PolicyError | undefined;
    for (const attempt of attempts) {
      try {
        const reader = await attempt();
        if (!reader) continue;
        if (await reader.treeByOid(tree, signal)) return reader;
        await reader[Symbol.asyncDispose]();
      } catch (error) {
        signal.throwIfAborted();
        failure = toPolicyError(error);
        // Only "there is no such commit" lets the next attempt change anything.
        if (failure.reason !== 'RefNotFound') throw failure;
      }
    }
    throw waiting(
      'TreeGone',
      `commit ${commit} can no longer be fetched (its history was rewritten or the repository replaced); the next pass of MarketplaceSource "${source.metadata.name}" points at what is there now`,
      { cause: failure },
    );
  }
}

const atCommit = (commit: string): Resolved => ({ commit, revision: `sha1:${commit}`, fetchRef: commit });
