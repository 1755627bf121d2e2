import { stalled } from '../base/errors.ts';
import type { Frontmatter, PackageFile } from '../protocol/types.ts';
import { canonicalDigest, comparePaths, PACKAGE_FORMAT, sha256 } from './digest.ts';
import type { BuiltPackage, Manifest, PackageInput } from './package.types.ts';
import { writeTar } from './tar.ts';

/** The root files that never enter package.tar, and the name of the private part that each becomes. */
const PRIVATE_FILES: ReadonlyMap<string, 'skillenv' | 'Dockerfile'> = new Map([
  ['.skillenv', 'skillenv'],
  ['.cubesandbox.dockerfile', 'Dockerfile'],
  ['.e2b.dockerfile', 'Dockerfile'],
]);

interface HashedFile extends PackageFile {
  sha256: string;
}

/** Length of the version within the digest. */
const VERSION_DIGITS = 12;

/** The version of a package: the first 12 hex digits of its digest. */
export const versionOf = (digest: string): string => digest.slice(0, VERSION_DIGITS);

/** Sorted and hashed. A package that validation let through is never refused here. */
function prepare(files: readonly PackageFile[]): HashedFile[] {
  const sorted = files
    .map((file) => ({ ...file, sha256: sha256(file.content) }))
    .sort((a, b) => comparePaths(a.path, b.path));
  for (const [i, file] of sorted.entries()) {
    if (file.path === sorted[i + 1]?.path) throw stalled('InternalError', `${file.path} stands twice in one package`);
  }
  if (!sorted.some((file) => file.path === 'SKILL.md')) {
    throw stalled('InternalError', 'a package without SKILL.md cannot be built; validate the skill first');
  }
  return sorted;
}

/** SKILL.md first, so that a reader of a stream has it at once; the rest stays sorted. */
function publicOrder(files: readonly HashedFile[]): HashedFile[] {
  const open = files.filter((file) => !PRIVATE_FILES.has(file.path));
  return [...open.filter((f) => f.path === 'SKILL.md'), ...open.filter((f) => f.path !== 'SKILL.md')];
}

function privateOf(files: readonly HashedFile[]): Map<string, HashedFile> {
  const parts = new Map<string, HashedFile>();
  for (const file of files) {
    const part = PRIVATE_FILES.get(file.path);
    if (!part) continue;
    const other = parts.get(part);
    if (other) throw stalled('InternalError', `${other.path} and ${file.path} cannot stand in one package`);
    parts.set(part, file);
  }
  return parts;
}

/** The frontmatter with its keys in a fixed order, so that the manifest's bytes do not depend on who built the object. */
function orderedFrontmatter(f: Frontmatter): Frontmatter {
  const { name, description, license, compatibility, metadata, allowedTools, runtime, source } = f;
  return {
    name,
    description,
    ...(license !== undefined && { license }),
    ...(compatibility !== undefined && { compatibility }),
    ...(metadata !== undefined && { metadata }),
    ...(allowedTools !== undefined && { allowedTools }),
    runtime,
    source,
  };
}

/**
 * Packs a valid skill: digest, package.tar, manifest and private parts. Pure; the same input gives the same bytes everywhere.
 * Takes the files in any order. Throws `InternalError` for input that validation cannot have passed
 * (no SKILL.md, a path twice, two Dockerfiles). The listing and the layout are those of docs/architecture.md, "Outside the cluster: names".
 */
export function buildPackage(input: PackageInput): BuiltPackage {
  const files = prepare(input.files);
  const digest = canonicalDigest(files);
  const open = publicOrder(files);
  const parts = privateOf(files);
  const { tar, offsets } = writeTar(open);
  const manifest: Manifest = {
    format: PACKAGE_FORMAT,
    digest,
    frontmatter: orderedFrontmatter(input.frontmatter),
    runtime: input.frontmatter.runtime,
    tar: { sha256: sha256(tar), size: tar.length },
    private: Object.fromEntries(
      [...parts].map(([name, { path, mode, content, sha256: sum }]) => [
        name,
        { path, mode, size: content.length, sha256: sum },
      ]),
    ),
    files: open.map(({ path, mode, content, sha256: sum }, i) => ({
      path,
      mode,
      size: content.length,
      sha256: sum,
      offset: offsets[i] as number,
    })),
  };
  const manifestBytes = Buffer.from(JSON.stringify(manifest));
  return {
    digest,
    tar,
    manifest,
    manifestBytes,
    manifestSHA256: sha256(manifestBytes),
    privateParts: Object.fromEntries([...parts].map(([name, file]) => [name, file.content])),
    fileCount: files.length,
    byteCount: files.reduce((sum, file) => sum + file.content.length, 0),
  };
}
