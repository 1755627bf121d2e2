import type { Candidate, Skill, Version } from '../../api/skill.ts';
import { retry } from '../../base/errors.ts';
import { inputHash } from '../../build/hash.ts';
import type { BuildInput, ContextURLs } from '../../build/input.ts';
import { type BuildSettings, urlSeconds } from '../../build/settings.ts';
import type { Engine } from '../../protocol/types.ts';
import { type KeySpace, packageKeys } from '../../store/keys.ts';
import type { Manifest } from '../../store/package.types.ts';
import type { PackageStore } from '../../store/packages.ts';
import type { ObjectStore } from '../../store/port.ts';

/** Where inputs of builds come from: the store, never Git. */
interface InputDeps {
  settings: BuildSettings;
  packages: PackageStore;
  store: ObjectStore;
  space: KeySpace;
}

/** Turns a candidate into what its build starts from. */
export class BuildInputs {
  readonly #deps: InputDeps;

  constructor(deps: InputDeps) {
    this.#deps = deps;
  }

  /** The input of an attempt, by default the next one. Errors: StoreCorrupt without the stored Dockerfile, and those of the store. */
  async of(
    skill: Skill,
    candidate: Candidate,
    rebuild: string | undefined,
    signal: AbortSignal,
    attempt = (candidate.attempt ?? 0) + 1,
  ): Promise<BuildInput> {
    const { namespace = '', name, uid = '' } = skill.metadata;
    const { tar, dockerfile } = await this.#stored(namespace, candidate, signal);
    const content = { tarSHA256: tar.sha256, dockerfileSHA256: dockerfile.sha256, rebuild };
    return {
      skill: { namespace, name, uid },
      engine: candidate.engine as Engine,
      digest: candidate.digest,
      inputHash: inputHash(content, this.#deps.settings),
      attempt,
      context: { tar, dockerfile },
    };
  }

  /** Presigned URLs that live as long as the Job can. */
  async urls(skill: Skill, candidate: Candidate): Promise<ContextURLs> {
    const { space, store, settings } = this.#deps;
    const keys = packageKeys(space, skill.metadata.namespace ?? '', candidate.digest);
    const seconds = urlSeconds(settings);
    const [tar, dockerfile] = await Promise.all([
      store.presignGet(keys.tar, seconds),
      store.presignGet(keys.privatePart('Dockerfile'), seconds),
    ]);
    return { tar, dockerfile };
  }

  async #stored(namespace: string, { version, digest, manifestSHA256 }: Version, signal: AbortSignal) {
    const manifest = await this.#deps.packages.readManifest(namespace, digest, manifestSHA256, signal);
    const dockerfile: Manifest['private'][string] | undefined = manifest?.private.Dockerfile;
    if (manifest && dockerfile) return { tar: manifest.tar, dockerfile };
    throw retry(
      'StoreCorrupt',
      `the package of version ${version} or its Dockerfile is not in the bucket; the next heal stores it again`,
    );
  }
}
