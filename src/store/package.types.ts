import type { Frontmatter, PackageFile, SkillReport } from '../protocol/types.ts';

/** Input of `buildPackage`: a valid skill. */
export interface PackageInput {
  frontmatter: Frontmatter;
  /** Sorted by path; includes the private root files. */
  files: PackageFile[];
}

/** A file in manifest.json: where its bytes lie in package.tar, so that one file is one ranged GET. */
interface ManifestFile {
  path: string;
  mode: '0644' | '0755';
  size: number;
  sha256: string;
  /** Byte offset of the content within package.tar. */
  offset: number;
}

/** manifest.json, written last: the commit point of a stored version. */
export interface Manifest {
  format: 'skill-package/v1';
  digest: string;
  frontmatter: Frontmatter;
  runtime: string;
  tar: { sha256: string; size: number };
  /** `skillenv` and `Dockerfile` where the package has them. */
  private: Record<string, { path: string; mode: '0644' | '0755'; size: number; sha256: string }>;
  files: ManifestFile[];
}

/** Everything that the store keeps for one version. */
export interface BuiltPackage {
  /** 64 hex digits over the canonical listing, private files included. */
  digest: string;
  tar: Uint8Array;
  manifest: Manifest;
  manifestBytes: Uint8Array;
  manifestSHA256: string;
  /** Name of the part → bytes. */
  privateParts: Record<string, Uint8Array>;
  /** Number of files and their total size, private ones included. */
  fileCount: number;
  byteCount: number;
}

/** The outcome of the task `evaluate` (src/worker.ts): the report without the files, which the package holds. */
export interface Evaluation {
  report: Omit<SkillReport, 'files'>;
  /** Present when the skill is valid. */
  built?: BuiltPackage;
}
