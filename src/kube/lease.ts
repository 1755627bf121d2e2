import { microTime } from './microtime.ts';
import type { KubeObject, Resource } from './types.ts';

/** coordination.k8s.io/v1 Lease. */
export const LEASES: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};

export interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}

export interface Lease extends KubeObject {
  spec?: LeaseSpec;
}

/** A lease as this process saw it; the clock of the holder is never compared with ours. */
export interface Observation {
  lease: Lease;
  /** Monotonic milliseconds at which this version of the lease was first seen. */
  at: number;
}

/** Keeps the time of the first sight while the lease does not change. */
export function observe(previous: Observation | undefined, lease: Lease, now: number): Observation {
  const version = lease.metadata.resourceVersion;
  return previous && previous.lease.metadata.resourceVersion === version ? previous : { lease, at: now };
}

/**
 * Milliseconds until the lease may be taken by `identity`; 0: now.
 * It is free when nobody holds it, when `identity` does itself (a restart under the same name), or when it has not changed
 * for its whole duration on our own monotonic clock.
 */
export function freeIn(seen: Observation, identity: string, fallbackMs: number, now: number): number {
  const { holderIdentity, leaseDurationSeconds } = seen.lease.spec ?? {};
  if (!holderIdentity || holderIdentity === identity) return 0;
  const durationMs = leaseDurationSeconds && leaseDurationSeconds > 0 ? leaseDurationSeconds * 1000 : fallbackMs;
  return Math.max(0, seen.at + durationMs - now);
}

/** The spec that makes `identity` the holder. A new holder counts one transition more and has a new acquireTime. */
export function held(before: LeaseSpec | undefined, identity: string, durationMs: number, now: number): LeaseSpec {
  const time = microTime(now);
  const same = before?.holderIdentity === identity;
  return {
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(durationMs / 1000),
    acquireTime: (same && before.acquireTime) || time,
    renewTime: time,
    leaseTransitions: (before?.leaseTransitions ?? 0) + (before && !same ? 1 : 0),
  };
}

/** The spec that gives the lease away at once. */
export const released = (before: LeaseSpec | undefined, now: number): LeaseSpec => ({
  holderIdentity: '',
  leaseDurationSeconds: 1,
  acquireTime: microTime(now),
  renewTime: microTime(now),
  leaseTransitions: before?.leaseTransitions ?? 0,
});
