import { isDigest } from '../../build/result.ts';
import type { KeySpace } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/port.ts';
import { type Inventory, recordOwner, type Thing } from '../../store/sweep.ts';

const MAX_BYTES = 4096;

/** What a record says. */
export interface RecordContent {
  /** `sha256:<hex>` of the image; undefined: the record cannot be read. */
  digest: string | undefined;
  /** Its Skill left the image behind on purpose. */
  kept: boolean;
}

/** Which image each record is about, read once per record and change. A record that is gone is known by its mark. */
export class RecordDigests {
  readonly #store: ObjectStore;
  readonly #space: KeySpace;
  readonly #known = new Map<Thing, RecordContent & { lastModified: number }>();

  constructor(store: ObjectStore, space: KeySpace) {
    this.#store = store;
    this.#space = space;
  }

  /** All records of a listing. */
  async of({ things, marks }: Inventory, signal: AbortSignal): Promise<ReadonlyMap<Thing, RecordContent>> {
    const wanted = new Map<Thing, { key: string; lastModified: number }>();
    for (const [thing, lastModified] of marks) {
      if (recordOwner(thing)) wanted.set(thing, { key: `${this.#space.root}marks/${thing}`, lastModified });
    }
    for (const [thing, { kind, lastModified }] of things) {
      if (kind === 'images') wanted.set(thing, { key: this.#space.root + thing, lastModified });
    }
    for (const thing of this.#known.keys()) if (!wanted.has(thing)) this.#known.delete(thing);
    for (const [thing, { key, lastModified }] of wanted) {
      if (this.#known.get(thing)?.lastModified === lastModified) continue;
      this.#known.set(thing, { lastModified, ...(await this.#read(key, signal)) });
    }
    return this.#known;
  }

  async #read(key: string, signal: AbortSignal): Promise<RecordContent> {
    const bytes = await this.#store.get(key, { maxBytes: MAX_BYTES }, signal);
    try {
      const text = Buffer.from(bytes ?? []).toString('utf8');
      const { digest, kept } = JSON.parse(text) as { digest?: unknown; kept?: unknown };
      return { digest: isDigest(digest) ? digest : undefined, kept: kept === true };
    } catch {
      return { digest: undefined, kept: false };
    }
  }
}
