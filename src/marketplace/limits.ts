const MIB = 1024 * 1024;

/** Bounds of the mirrors on this machine. */
export interface GitLimits {
  /** Largest blob that is fetched, in bytes; larger ones stay on the server. */
  blobBytes: number;
  /** Largest mirror, in bytes. */
  repositoryBytes: number;
  /** All mirrors together, in bytes; the least recently used go first. */
  diskBytes: number;
  /** A mirror this many times larger than after its last clone is cloned anew. */
  growthFactor: number;
  /** Below this size growth does not matter, in bytes. */
  growthFloorBytes: number;
  /** So many fetches into one mirror, then it is cloned anew: each leaves a pack that reads must look into. */
  maxFetches: number;
  /** Longest answer of ls-remote, in bytes. */
  lsRemoteBytes: number;
  /** Git processes that talk to remotes at once. */
  processes: number;
  /** How long a mirror stays after nothing names it, in milliseconds. */
  graceMs: number;
}

/** What the operator uses unless its configuration says otherwise. */
export const DEFAULT_GIT_LIMITS: GitLimits = {
  blobBytes: 60 * MIB,
  repositoryBytes: 2048 * MIB,
  diskBytes: 8192 * MIB,
  growthFactor: 4,
  growthFloorBytes: 16 * MIB,
  maxFetches: 200,
  lsRemoteBytes: 32 * MIB,
  processes: 16,
  graceMs: 600_000,
};
