import type { Retired, Skill, Version } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import { PolicyError } from '../../base/errors.ts';
import { ownsImage, parsePinned } from '../../build/names.ts';
import type { Registry } from '../../build/port.ts';
import type { Event } from '../../lifecycle/slots.ts';
import type { Builds } from './builds.ts';
import type { HandsResult } from './port.ts';
import type { ImageRecords } from './records.ts';
import { ownerOf, type Registrations, type VersionOwner } from './registrations.ts';

interface RemovalDeps {
  builds: Builds;
  registrations: Registrations;
  registry: Registry;
  records: ImageRecords;
  clock: Clock;
  /** How long a removal is tried before the version goes to the ledger (I16), milliseconds. */
  boundMs: number;
}

const RETRY_MS = 30_000;

/** The part of a version that names what is outside the cluster. */
export type Removable = Pick<Version, 'engine' | 'templateID' | 'image' | 'settings'>;

/** Removes what replaced versions left outside the cluster: template, image record, image, in that order. */
export class Removals {
  readonly #deps: RemovalDeps;
  /** When the first try of an entry was, monotonic milliseconds. */
  readonly #since = new Map<string, number>();

  constructor(deps: RemovalDeps) {
    this.#deps = deps;
  }

  /** Tries every entry once. */
  async step(skill: Skill, entries: readonly Retired[], once: boolean, signal: AbortSignal): Promise<HandsResult> {
    const events: Event[] = [];
    for (const entry of entries) events.push(await this.#tried(skill, entry, once, signal));
    const left = events.some((event) => event.type === 'RetiredInUse' && event.retriesLeft);
    return { events, againMs: left ? RETRY_MS : undefined };
  }

  async #tried(skill: Skill, entry: Retired, once: boolean, signal: AbortSignal): Promise<Event> {
    const id = [skill.metadata.uid, entry.digest, entry.templateID, entry.image].join('|');
    const now = this.#deps.clock.monotonic();
    const since = this.#since.get(id) ?? now;
    this.#since.set(id, since);
    try {
      await this.remove(ownerOf(skill), entry, signal);
      this.#since.delete(id);
      return { type: 'RetiredGone', entry };
    } catch (error) {
      if (signal.aborted || !(error instanceof PolicyError)) throw error;
      // What is not this Skill's, or is refused for good, stays; the ledger says so to a person.
      if (error.policy === 'Stalled') {
        this.#since.delete(id);
        return { type: 'RetiredFailed', entry };
      }
      const retriesLeft = !once && now - since < this.#deps.boundMs;
      if (!retriesLeft) this.#since.delete(id);
      return { type: 'RetiredInUse', entry, retriesLeft };
    }
  }

  /**
   * Removes what a version left outside the cluster, after the engine's name and the repository proved to be its owner's.
   * `keepImage`: the image only proves whose the template is, and stays. Errors: Stalled for what is somebody else's, EngineNotConfigured, and those of engine, store and registry.
   */
  async remove(
    owner: VersionOwner,
    entry: Removable,
    signal: AbortSignal,
    options: { keepImage?: boolean } = {},
  ): Promise<void> {
    const { templateID, image } = entry;
    const setup = this.#deps.registrations.setupOf(entry.engine);
    if (templateID) {
      if (!setup) throw new PolicyError('Waiting', 'EngineNotConfigured', `engine ${entry.engine} is not configured`);
      const ref = this.#deps.registrations.refFor(owner, entry);
      if (!ref)
        throw new PolicyError('Stalled', 'TemplateForeign', `template ${templateID} has no image to prove it by`);
      await setup.engine.delete(ref, signal);
    }
    if (image && !options.keepImage) await this.#removeImage(owner, entry, image, signal);
  }

  async #removeImage(
    { namespace, skill }: VersionOwner,
    entry: Removable,
    image: string,
    signal: AbortSignal,
  ): Promise<void> {
    const owner = { namespace, skill, engine: entry.engine ?? '' };
    const repository = this.#deps.builds.repositoryOf(owner);
    const parsed = parsePinned(image);
    if (!parsed || !ownsImage(image, this.#deps.registry.host, repository)) {
      throw new PolicyError(
        'Stalled',
        'RegistryDenied',
        `image ${image} is not in the repository of this Skill and is left alone`,
      );
    }
    await this.#deps.records.removeDigest(owner, parsed.digest, signal);
    await this.#deps.registry.deleteImage(repository, parsed.digest, signal);
  }
}
