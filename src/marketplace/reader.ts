import { retry, stalled } from '../base/errors.ts';
import type { Generation } from './generation.ts';
import type { Blob, TreeEntry, TreeReader } from './port.ts';
import { parseTree } from './treeparse.ts';

/** Trees above this many entries are not kept for the next path. */
const MAX_REMEMBERED = 20_000;

/** A TreeReader on one clone of a mirror; it holds the clone's lease until it is disposed. */
export class MirrorReader implements TreeReader {
  readonly commit: string;
  readonly #generation: Generation;
  readonly #release: () => Promise<void>;
  readonly #onCorrupt: () => Promise<void>;
  /** Trees on the way to paths, so that siblings share the walk. */
  readonly #walked = new Map<string, TreeEntry[]>();
  readonly #sizes = new Map<string, number>();
  #root: string | undefined;

  /** @param onCorrupt called before an error that only a new clone heals. */
  constructor(generation: Generation, commit: string, onCorrupt: () => Promise<void>) {
    this.#generation = generation;
    this.commit = commit;
    this.#release = generation.lease();
    this.#onCorrupt = onCorrupt;
  }

  async tree(path: string, signal: AbortSignal): Promise<{ oid: string; entries: TreeEntry[] } | undefined> {
    let oid = await this.#rootOid(signal);
    let entries = await this.#walk(oid, signal);
    for (const name of path === '' ? [] : path.split('/')) {
      const entry = entries.find((candidate) => candidate.name === name && candidate.rawName === undefined);
      if (entry?.mode !== '040000') return undefined;
      oid = entry.oid;
      entries = await this.#walk(oid, signal);
    }
    return { oid, entries };
  }

  async treeByOid(oid: string, signal: AbortSignal): Promise<TreeEntry[] | undefined> {
    return this.#guard(async () => {
      const object = await this.#generation.objects.contents(oid, signal);
      if (object?.type !== 'tree') return undefined;
      if (!object.content)
        throw stalled(
          'RepositoryTooLarge',
          `a directory of commit ${this.commit} has a listing of ${object.size} bytes: split it`,
        );
      return parseTree(object.content);
    });
  }

  async blob(oid: string, maxBytes: number, signal: AbortSignal): Promise<Blob> {
    return this.#guard(async () => {
      const size = this.#sizes.get(oid) ?? (await this.#sizeOf(oid, signal));
      if (size < 0 || size > maxBytes) return { size };
      const object = await this.#generation.objects.contents(oid, signal);
      return object?.content ? { size, content: object.content } : { size };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#release();
  }

  async #sizeOf(oid: string, signal: AbortSignal): Promise<number> {
    const object = await this.#generation.objects.info(oid, signal);
    const size = object?.type === 'blob' ? object.size : -1;
    this.#sizes.set(oid, size);
    return size;
  }

  async #rootOid(signal: AbortSignal): Promise<string> {
    if (this.#root !== undefined) return this.#root;
    return this.#guard(async () => {
      const commit = await this.#generation.objects.contents(this.commit, signal);
      const root = commit?.content
        ? /^tree ([0-9a-f]{40})\n/.exec(commit.content.toString('latin1', 0, 64))?.[1]
        : undefined;
      if (root === undefined)
        throw retry(
          'MirrorCorrupt',
          `commit ${this.commit} cannot be read from the local mirror: the operator fetches it anew by itself`,
        );
      this.#root = root;
      return root;
    });
  }

  async #walk(oid: string, signal: AbortSignal): Promise<TreeEntry[]> {
    const known = this.#walked.get(oid);
    if (known) return known;
    const entries = await this.treeByOid(oid, signal);
    if (!entries) {
      await this.#onCorrupt();
      throw retry(
        'MirrorCorrupt',
        `directory ${oid} of commit ${this.commit} is missing in the local mirror: the operator fetches it anew by itself`,
      );
    }
    if (entries.length <= MAX_REMEMBERED) this.#walked.set(oid, entries);
    return entries;
  }

  async #guard<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (error instanceof Error && 'reason' in error && error.reason === 'MirrorCorrupt') await this.#onCorrupt();
      throw error;
    }
  }
}
