/** Every key of the bucket (docs/architecture.md, "Outside the cluster: names"); all lie below `<prefix>/v1/<installation>/`. */
import { stalled } from '../base/errors.ts';

const HEX_64 = /^[0-9a-f]{64}$/;
/** A namespace is a DNS label. */
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
/** An object name is a DNS subdomain. */
const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const PREFIX = /^([\w.-]+(\/[\w.-]+)*)?$/;
/** S3 allows 1024 bytes per key. */
const MAX_KEY_BYTES = 1024;

/** The part of the bucket that belongs to one installation. */
export interface KeySpace {
  /** `<prefix>/v1/<installation>/`, or `v1/<installation>/` without a prefix. */
  readonly root: string;
}

/** Where one version of a skill lies. */
export interface PackageKeys {
  tar: string;
  manifest: string;
  /** Key of a private part: `skillenv` or `Dockerfile`. */
  privatePart(name: string): string;
}

function checked(value: string, rule: RegExp, what: string): string {
  if (!rule.test(value)) {
    throw stalled('InternalError', `${JSON.stringify(value)} is not ${what} and cannot stand in a key of the store`);
  }
  return value;
}

/**
 * The key space of an installation.
 * `prefix` is '' or a clean relative path, `installation` a DNS label; anything else is `StoreConfigInvalid`.
 */
export function keySpace(prefix: string, installation: string): KeySpace {
  const clean = PREFIX.test(prefix) && !prefix.split('/').some((part) => part === '.' || part === '..');
  if (!clean || Buffer.byteLength(prefix) > 256) {
    throw stalled(
      'StoreConfigInvalid',
      `the store prefix ${JSON.stringify(prefix)} must be a clean relative path of at most 256 bytes, such as "skills"`,
    );
  }
  if (!LABEL.test(installation)) {
    throw stalled(
      'StoreConfigInvalid',
      `the installation id ${JSON.stringify(installation)} must be at most 63 of a-z, 0-9 and -, such as a UID`,
    );
  }
  return { root: `${prefix === '' ? '' : `${prefix}/`}v1/${installation}/` };
}

/** Keys of a package; `digest` is 64 hex digits. */
export function packageKeys(space: KeySpace, namespace: string, digest: string): PackageKeys {
  const tail = `${checked(namespace, LABEL, 'a namespace')}/${checked(digest, HEX_64, 'a digest')}`;
  const base = `${space.root}packages/${tail}`;
  return {
    tar: `${base}/package.tar`,
    manifest: `${base}/manifest.json`,
    privatePart: (name) =>
      `${space.root}private/${tail}/${checked(name, /^(skillenv|Dockerfile)$/, 'the name of a private part')}`,
  };
}

/** Record of an image that the registry confirmed; `inputHash` is 64 hex digits. */
export function imageKey(
  space: KeySpace,
  image: { namespace: string; skill: string; engine: string; inputHash: string },
): string {
  const namespace = checked(image.namespace, LABEL, 'a namespace');
  const skill = checked(image.skill, SUBDOMAIN, 'the name of a Skill');
  const engine = checked(image.engine, /^(cubesandbox|e2b)$/, 'an engine');
  return `${space.root}images/${namespace}/${skill}-${engine}/${checked(image.inputHash, HEX_64, 'an input hash')}.json`;
}

/** An uploaded archive, the only kind of object that an `objectKey` may name. */
export function uploadKey(space: KeySpace, namespace: string, sha256: string): string {
  return `${space.root}uploads/${checked(namespace, LABEL, 'a namespace')}/${checked(sha256, HEX_64, 'a sha256')}`;
}

/** The kinds of things that the sweep marks. */
export type MarkKind = 'packages' | 'private' | 'images' | 'uploads';

/** The sweep's mark for one thing; `key` is the thing's own key below `<kind>/<namespace>/`. */
export function markKey(space: KeySpace, kind: MarkKind, namespace: string, key: string): string {
  const clean = checked(key, /^[\w.-]+(\/[\w.-]+)*$/, 'a relative key');
  if (clean.split('/').some((part) => part === '.' || part === '..')) checked(key, /^$/, 'a clean relative key');
  const mark = `${space.root}marks/${kind}/${checked(namespace, LABEL, 'a namespace')}/${clean}`;
  if (mark.length > MAX_KEY_BYTES) checked(key, /^$/, `short enough (${MAX_KEY_BYTES} bytes per key)`);
  return mark;
}

/** An object that is written only to learn the store's time from it. */
export const clockKey = (space: KeySpace): string => `${space.root}marks/clock`;
