/** Packages in the bucket: written once, manifest last, read and verified downwards. */
import { setImmediate } from 'node:timers/promises';
import { PolicyError, waiting } from '../base/errors.ts';
import { canonicalDigest, comparePaths, PACKAGE_FORMAT, sha256OfLarge } from './digest.ts';
import { type KeySpace, type PackageKeys, packageKeys } from './keys.ts';
import type { BuiltPackage, Manifest } from './package.types.ts';
import type { ObjectStore } from './port.ts';

/** How `put` goes about it; every choice ends in the same stored bytes. */
export interface PutOptions {
  /**
   * `absent` (default): writes at once, the fewest requests for a new package (2 PUTs for a prompt-only one).
   * `present`: reads the manifest first, so that a stored package costs one GET and no PUT.
   */
  expect?: 'absent' | 'present';
  /** Overwrites whatever is stored under the digest, with these bytes of the same digest. */
  heal?: boolean;
}

/** What `put` did. `existed`: manifest and all parts were there with the same bytes. */
export interface PutResult {
  outcome: 'created' | 'existed' | 'healed';
  manifestSHA256: string;
}

/** What `verify` found; `key` and `problem` name the first object that is wrong. */
export type Verification =
  | { state: 'intact'; manifest: Manifest }
  | { state: 'missing' | 'corrupt'; key: string; problem: string };

const TAR_TYPE = 'application/x-tar';
const JSON_TYPE = 'application/json';
const PART_TYPE = 'application/octet-stream';

/** 10,000 files with paths of 512 bytes come to about 7 MiB of manifest. */
const MAX_MANIFEST = 16 * 1024 * 1024;
/** Bytes hashed in one go before other work gets its turn. */
const SLICE = 1024 * 1024;

const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

const corrupt = (key: string, problem: string) =>
  waiting('StoreCorrupt', `${key} ${problem}; annotate the Skill with skills.tfrobot.io/requestedAt to store it again`);

/** Reads and writes packages of one installation through an `ObjectStore`. Errors are the store's, and `StoreCorrupt`. */
export class PackageStore {
  readonly #objects: ObjectStore;
  readonly #space: KeySpace;

  constructor(objects: ObjectStore, space: KeySpace) {
    this.#objects = objects;
    this.#space = space;
  }

  /**
   * Stores a package of a namespace; afterwards manifest, tar and private parts are there with these bytes.
   * Safe to run twice, at the same time, and after a death between any two requests: the manifest is written last.
   * Throws `StoreCorrupt` when other bytes are stored under the digest, unless `heal` is set.
   */
  async put(namespace: string, built: BuiltPackage, signal: AbortSignal, options: PutOptions = {}): Promise<PutResult> {
    const keys = this.#keys(namespace, built.digest);
    if (options.heal) return this.#heal(keys, built, signal);
    if (options.expect === 'present' && (await this.#isStored(keys, built, signal))) return existed(built);
    const tar = await this.#objects.putIfAbsent(keys.tar, built.tar, TAR_TYPE, signal);
    if (tar === 'exists') {
      if (options.expect !== 'present' && (await this.#isStored(keys, built, signal))) return existed(built);
      // No manifest yet: a writer died or is still at it. What lies there must be ours before the manifest vouches for it.
      await this.#compare(keys.tar, built.tar, signal);
    }
    for (const [name, bytes] of Object.entries(built.privateParts)) {
      await this.#putPart(keys.privatePart(name), bytes, PART_TYPE, signal);
    }
    const outcome = await this.#putPart(keys.manifest, built.manifestBytes, JSON_TYPE, signal);
    return { outcome: outcome === 'created' ? 'created' : 'existed', manifestSHA256: built.manifestSHA256 };
  }

  /**
   * The manifest of a stored version, or undefined when there is none.
   * Throws `StoreCorrupt` when its bytes do not have the hash that the status names.
   */
  async readManifest(
    namespace: string,
    digest: string,
    manifestSHA256: string,
    signal: AbortSignal,
  ): Promise<Manifest | undefined> {
    const { manifest: key } = this.#keys(namespace, digest);
    const bytes = await this.#objects.get(key, { maxBytes: MAX_MANIFEST }, signal);
    if (!bytes) return undefined;
    const read = parseManifest(bytes, await sha256OfLarge(bytes), { digest, manifestSHA256 });
    if (typeof read === 'string') throw corrupt(key, read);
    return read;
  }

  /**
   * Reads all of a stored version and checks it downwards: manifest hash, tar hash, hash of every file at its offset,
   * private parts, and the digest over all of them.
   */
  async verify(namespace: string, digest: string, manifestSHA256: string, signal: AbortSignal): Promise<Verification> {
    const keys = this.#keys(namespace, digest);
    try {
      const manifest = await this.readManifest(namespace, digest, manifestSHA256, signal);
      if (!manifest) throw new Damage('missing', keys.manifest, 'is not in the bucket');
      await this.#verifyTar(keys.tar, manifest, signal);
      for (const [name, part] of Object.entries(manifest.private)) {
        await this.#readWhole(keys.privatePart(name), part, signal);
      }
      if (digestOf(manifest) !== digest) {
        throw new Damage('corrupt', keys.manifest, 'lists files that do not have the digest of its key');
      }
      return { state: 'intact', manifest };
    } catch (error) {
      if (error instanceof Damage) return { state: error.state, key: error.key, problem: error.message };
      if (error instanceof PolicyError && error.reason === 'StoreCorrupt') {
        return { state: 'corrupt', key: keys.manifest, problem: error.message };
      }
      throw error;
    }
  }

  #keys(namespace: string, digest: string): PackageKeys {
    return packageKeys(this.#space, namespace, digest);
  }

  async #heal(keys: PackageKeys, built: BuiltPackage, signal: AbortSignal): Promise<PutResult> {
    await this.#objects.put(keys.tar, built.tar, TAR_TYPE, signal);
    for (const [name, bytes] of Object.entries(built.privateParts)) {
      await this.#objects.put(keys.privatePart(name), bytes, PART_TYPE, signal);
    }
    await this.#objects.put(keys.manifest, built.manifestBytes, JSON_TYPE, signal);
    return { outcome: 'healed', manifestSHA256: built.manifestSHA256 };
  }

  /** True when the manifest is there with the same bytes; it was written last, so everything else is there too. */
  async #isStored(keys: PackageKeys, built: BuiltPackage, signal: AbortSignal): Promise<boolean> {
    const bytes = await this.#objects.get(keys.manifest, { maxBytes: MAX_MANIFEST }, signal);
    if (!bytes) return false;
    if (!same(bytes, built.manifestBytes)) throw corrupt(keys.manifest, 'holds other bytes than this package has');
    return true;
  }

  async #putPart(key: string, bytes: Uint8Array, type: string, signal: AbortSignal): Promise<'created' | 'exists'> {
    const outcome = await this.#objects.putIfAbsent(key, bytes, type, signal);
    if (outcome === 'exists') await this.#compare(key, bytes, signal);
    return outcome;
  }

  async #compare(key: string, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    const stored = await this.#objects.get(key, { maxBytes: Math.max(bytes.length, 1) }, signal);
    if (!stored)
      throw waiting(
        'StoreCorrupt',
        `${key} exists for a write but not for a read; check that the store offers read-after-write consistency`,
      );
    if (!same(stored, bytes)) throw corrupt(key, 'holds other bytes than this package has');
  }

  async #verifyTar(key: string, manifest: Manifest, signal: AbortSignal): Promise<void> {
    const tar = await this.#readWhole(key, manifest.tar, signal);
    let sinceBreak = 0;
    for (const file of manifest.files) {
      const content = tar.subarray(file.offset, file.offset + file.size);
      if ((await sha256OfLarge(content)) !== file.sha256) {
        throw new Damage('corrupt', key, `does not hold ${file.path} where its manifest says`);
      }
      sinceBreak += content.length;
      if (sinceBreak < SLICE) continue;
      sinceBreak = 0;
      await setImmediate(undefined, { signal });
    }
  }

  /** An object that must have that size and hash; throws `Damage`. */
  async #readWhole(key: string, want: { size: number; sha256: string }, signal: AbortSignal): Promise<Uint8Array> {
    // One byte more than expected is allowed in, so that a longer object is told from a broken answer.
    const bytes = await this.#objects.get(key, { maxBytes: want.size + 1 }, signal).catch((error: unknown) => {
      if (error instanceof PolicyError && error.reason === 'StoreCorrupt')
        throw new Damage('corrupt', key, error.message);
      throw error;
    });
    if (!bytes) throw new Damage('missing', key, 'is not in the bucket');
    if ((await sha256OfLarge(bytes)) !== want.sha256) {
      throw new Damage('corrupt', key, 'does not have the sha256 that its manifest names');
    }
    return bytes;
  }
}

/** The first thing that `verify` found wrong. */
class Damage extends Error {
  readonly state: 'missing' | 'corrupt';
  readonly key: string;
  constructor(state: 'missing' | 'corrupt', key: string, problem: string) {
    super(problem);
    this.state = state;
    this.key = key;
  }
}

const existed = (built: BuiltPackage): PutResult => ({ outcome: 'existed', manifestSHA256: built.manifestSHA256 });

/** The manifest, or what is wrong with it. Bytes with the right hash are the operator's own and need no schema. */
function parseManifest(
  bytes: Uint8Array,
  hash: string,
  want: { digest: string; manifestSHA256: string },
): Manifest | string {
  if (hash !== want.manifestSHA256) return 'does not have the sha256 that the status names';
  const manifest = JSON.parse(Buffer.from(bytes).toString('utf8')) as Manifest;
  if (manifest.format !== PACKAGE_FORMAT) return `has the format ${String(manifest.format)}, not ${PACKAGE_FORMAT}`;
  if (manifest.digest !== want.digest) return 'names another digest than its key';
  return manifest;
}

function digestOf(manifest: Manifest): string {
  const files = [...manifest.files, ...Object.values(manifest.private)];
  return canonicalDigest(files.sort((a, b) => comparePaths(a.path, b.path)));
}
