import type { Clock } from '../../base/clock.ts';
import { LEASES, type Lease } from '../../kube/lease.ts';
import type { Session } from './session.ts';

/** Name of the operator's Lease. */
const LEASE = 'skill-operator';
const DURATION_MS = 15_000;
/** The holder renews every 2 s; on a busy machine less often. */
const LOOK_MS = 1000;

/** Whether an operator works. */
export type Leader =
  | { alive: true; holder: string; ageMs: number }
  /** `holder` '' was given up on purpose; undefined: there is no Lease. */
  | { alive: false; holder: string | undefined; ageMs?: number };

const durationOf = (lease: Lease): number => (lease.spec?.leaseDurationSeconds ?? DURATION_MS / 1000) * 1000;

/**
 * Looks whether somebody holds the Lease and renews it. The holder's clock is never trusted: a Lease that looks old is watched for its
 * whole duration on our own clock before it counts as abandoned.
 */
export async function leaderOf(
  { api }: Pick<Session, 'api'>,
  namespace: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<Leader> {
  const read = () => api.get<Lease>(LEASES, namespace, LEASE, signal);
  const first = await read();
  const holder = first?.spec?.holderIdentity;
  if (!first || !holder) return { alive: false, holder: first ? '' : undefined };
  const ageOf = ({ spec }: Lease) => clock.now() - Date.parse(spec?.renewTime ?? '');
  const age = ageOf(first);
  if (age >= 0 && age < durationOf(first)) return { alive: true, holder, ageMs: age };
  const until = clock.monotonic() + durationOf(first);
  while (clock.monotonic() < until) {
    await clock.sleep(LOOK_MS, signal);
    const now = await read();
    const by = now?.spec?.holderIdentity;
    if (now && by && now.spec?.renewTime !== first.spec?.renewTime) return { alive: true, holder: by, ageMs: 0 };
  }
  return { alive: false, holder, ageMs: age };
}
