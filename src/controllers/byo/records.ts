import { isDigest } from '../../build/result.ts';
import { imageKey, type KeySpace } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/port.ts';

/** Whose image a record is about. */
export interface ImageOwner {
  namespace: string;
  /** metadata.name of the Skill. */
  skill: string;
  engine: string;
}

/** What a record says: the image that the registry confirmed. */
export interface ImageRecord {
  digest: string;
  size: number;
  /** Its Skill left the image behind on purpose: the sweep leaves both alone. */
  kept?: true;
}

const MAX_BYTES = 4096;
/** Any valid hash: only the folder of the key matters. */
const ANY_HASH = '0'.repeat(64);

/** Records of built images, by which a restored cluster finds them again without a build. */
export class ImageRecords {
  readonly #store: ObjectStore;
  readonly #space: KeySpace;

  constructor(store: ObjectStore, space: KeySpace) {
    this.#store = store;
    this.#space = space;
  }

  /** The record of an input; undefined when there is none, or none that can be read. */
  async get(owner: ImageOwner, inputHash: string, signal: AbortSignal): Promise<ImageRecord | undefined> {
    return this.#read(imageKey(this.#space, { ...owner, inputHash }), signal);
  }

  async put(owner: ImageOwner, inputHash: string, record: ImageRecord, signal: AbortSignal): Promise<void> {
    const key = imageKey(this.#space, { ...owner, inputHash });
    await this.#store.put(key, Buffer.from(JSON.stringify(record)), 'application/json', signal);
  }

  /** Deletes every record that names the digest; before the image itself goes. */
  async removeDigest(owner: ImageOwner, digest: string, signal: AbortSignal): Promise<void> {
    for await (const { key } of this.#of(owner, digest, signal)) await this.#store.delete(key, signal);
  }

  /** Marks every record that names the digest as one that stays although no Skill names it. */
  async keepDigest(owner: ImageOwner, digest: string, signal: AbortSignal): Promise<void> {
    for await (const { key, record } of this.#of(owner, digest, signal)) {
      if (record.kept) continue;
      const bytes = Buffer.from(JSON.stringify({ ...record, kept: true }));
      await this.#store.put(key, bytes, 'application/json', signal);
    }
  }

  /** Digests of the images that stay although no Skill names them. */
  async kept(owner: ImageOwner, signal: AbortSignal): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for await (const { record } of this.#of(owner, undefined, signal)) if (record.kept) found.add(record.digest);
    return found;
  }

  /** The records of an owner, of one digest or of all. */
  async *#of(
    owner: ImageOwner,
    digest: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<{ key: string; record: ImageRecord }> {
    const folder = imageKey(this.#space, { ...owner, inputHash: ANY_HASH }).slice(0, -`${ANY_HASH}.json`.length);
    for await (const page of this.#store.list(folder, signal)) {
      for (const { key } of page) {
        const record = await this.#read(key, signal);
        if (record && (digest === undefined || record.digest === digest)) yield { key, record };
      }
    }
  }

  async #read(key: string, signal: AbortSignal): Promise<ImageRecord | undefined> {
    const bytes = await this.#store.get(key, { maxBytes: MAX_BYTES }, signal);
    if (!bytes) return undefined;
    try {
      const { digest, size, kept } = JSON.parse(Buffer.from(bytes).toString('utf8')) as Partial<ImageRecord>;
      if (!isDigest(digest) || typeof size !== 'number') return undefined;
      return { digest, size, ...(kept ? { kept } : {}) };
    } catch {
      return undefined;
    }
  }
}
