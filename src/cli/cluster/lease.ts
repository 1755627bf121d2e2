import type { Clock } from '../../base/clock.ts';
import { LEASES, type Lease } from '../../kube/lease.ts';
import { listAll } from './objects.ts';
import type { Session } from './session.ts';

/** The Lease of the operator, or of one shard of it. */
const NAMES = /^skill-operator(-shard-[0-9a-f]{10})?$/;
const DURATION_MS = 15_000;
/** The holder renews every 2 s; on a busy machine less often. */
const LOOK_MS = 1000;

/** Whether somebody works under a Lease. */
export type Leader = { lease: string } & (
  | { alive: true; holder: string; ageMs: number }
  /** `holder` '' was given up on purpose; undefined: there is no Lease. */
  | { alive: false; holder: string | undefined; ageMs?: number }
);

const durationOf = (lease: Lease): number => (lease.spec?.leaseDurationSeconds ?? DURATION_MS / 1000) * 1000;

async function leaderOf(
  { api }: Pick<Session, 'api'>,
  first: Lease,
  clock: Clock,
  signal: AbortSignal,
): Promise<Leader> {
  const { name: lease, namespace = '' } = first.metadata;
  const holder = first.spec?.holderIdentity;
  if (!holder) return { lease, alive: false, holder: '' };
  const ageMs = clock.now() - Date.parse(first.spec?.renewTime ?? '');
  if (ageMs >= 0 && ageMs < durationOf(first)) return { lease, alive: true, holder, ageMs };
  const until = clock.monotonic() + durationOf(first);
  while (clock.monotonic() < until) {
    await clock.sleep(LOOK_MS, signal);
    const now = await api.get<Lease>(LEASES, namespace, lease, signal);
    const by = now?.spec?.holderIdentity;
    if (now && by && now.spec?.renewTime !== first.spec?.renewTime) return { lease, alive: true, holder: by, ageMs: 0 };
  }
  return { lease, alive: false, holder, ageMs };
}

/**
 * Looks whether somebody holds each Lease of the operator and renews it. The holder's clock is never trusted: a Lease that looks old is
 * watched for its whole duration on our own clock before it counts as abandoned. Without any Lease there is one entry that says so.
 */
export async function leadersOf(
  session: Session,
  namespace: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<Leader[]> {
  const leases = (await listAll<Lease>(session, LEASES, { namespace }, signal)).filter(({ metadata }) =>
    NAMES.test(metadata.name),
  );
  if (leases.length === 0) return [{ lease: 'skill-operator', alive: false, holder: undefined }];
  return Promise.all(leases.map((lease) => leaderOf(session, lease, clock, signal)));
}
