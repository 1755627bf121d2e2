import { PolicyError, retry } from '../../base/errors.ts';
import { imageTag, pinnedImage } from '../../build/names.ts';
import type { Registry } from '../../build/port.ts';
import { DOCKERFILES } from '../../protocol/names.ts';
import type { Builds } from './builds.ts';
import type { BuildJobs } from './jobs.ts';
import type { Ledger } from './ledger.ts';
import type { ImageOwner, ImageRecords } from './records.ts';

interface LeftoverDeps {
  builds: Pick<Builds, 'repositoryOf'>;
  jobs: Pick<BuildJobs, 'hasPods'>;
  registry: Registry;
  records: ImageRecords;
  ledger: Pick<Ledger, 'images'>;
}

/** Whose images they are. */
interface LeftoverOwner {
  namespace: string;
  /** metadata.name and uid of the Skill. */
  skill: string;
  uid: string;
}

/**
 * Images that builds of a Skill pushed and no status ever named: the build was cancelled, or its Skill deleted, between the push and its
 * record. They are found by what the registry lists below the repositories that this Skill alone derives.
 */
export class Leftovers {
  readonly #deps: LeftoverDeps;

  constructor(deps: LeftoverDeps) {
    this.#deps = deps;
  }

  /**
   * Deletes them with their records, for a Skill of which no slot holds an image any more. Stays: what an earlier Skill of the name
   * left on purpose, what the ledger removes in its own order, and what somebody else put there, under a tag of another form.
   * Errors: Retry `RemovalPending` while a build pod may still push, and those of registry, store and API.
   */
  async remove(owner: LeftoverOwner, signal: AbortSignal): Promise<void> {
    const { namespace, skill, uid } = owner;
    if (await this.#deps.jobs.hasPods(uid, signal)) {
      throw retry('RemovalPending', `a build pod of Skill ${skill} has not ended yet; its image is removed afterwards`);
    }
    for (const engine of Object.keys(DOCKERFILES)) await this.#clear({ namespace, skill, engine }, signal);
  }

  async #clear(owner: ImageOwner, signal: AbortSignal): Promise<void> {
    const { builds, registry, records, ledger } = this.#deps;
    const repository = builds.repositoryOf(owner);
    const { ours, theirs } = await this.#tagged(repository, signal);
    if (ours.size === 0) return;
    const kept = await records.kept(owner, signal);
    const doomed = ledger.images();
    for (const digest of ours) {
      if (theirs.has(digest) || kept.has(digest) || doomed.has(pinnedImage(registry.host, repository, digest)))
        continue;
      await records.removeDigest(owner, digest, signal);
      await registry.deleteImage(repository, digest, signal);
    }
  }

  /** Digests that have the tag which a build gives them, and digests that have another one: deleting takes all tags of a digest. */
  async #tagged(repository: string, signal: AbortSignal): Promise<{ ours: Set<string>; theirs: Set<string> }> {
    const found = { ours: new Set<string>(), theirs: new Set<string>() };
    for (const tag of await this.#deps.registry.tags(repository, signal)) {
      const digest = await this.#digestOf(repository, tag, signal);
      if (digest !== undefined) found[imageTag(digest) === tag ? 'ours' : 'theirs'].add(digest);
    }
    return found;
  }

  /** undefined: gone meanwhile, or no single image, which no build pushes. */
  async #digestOf(repository: string, tag: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      return (await this.#deps.registry.image(repository, tag, signal))?.digest;
    } catch (error) {
      if (error instanceof PolicyError && error.reason === 'ImageInvalid') return undefined;
      throw error;
    }
  }
}
