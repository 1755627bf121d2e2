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
    const folder = imageKey(this.#space, { ...owner, inputHash: ANY_HASH }).slice(0, -`${ANY_HASH}.json`.length);
    for await (const page of this.#store.list(folder, signal)) {
      for (const { key } of page) {
        if ((await this.#read(key, signal))?.digest === digest) await this.#store.delete(key, signal);
      }
    }
  }

  async #read(key: string, signal: AbortSignal): Promise<ImageRecord | undefined> {
    const bytes = await this.#store.get(key, { maxBytes: MAX_BYTES }, signal);
    if (!bytes) return undefined;
    try {
      const { digest, size } = JSON.parse(Buffer.from(bytes).toString('utf8')) as Partial<ImageRecord>;
      return isDigest(digest) && typeof size === 'number' ? { digest, size } : undefined;
    } catch {
      return undefined;
    }
  }
}
