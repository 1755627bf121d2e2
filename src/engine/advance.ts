import { withBuildDeadline } from './failures.ts';
import type { BuildFailure, RegisterSpec, SandboxEngine, TemplateRef } from './port.ts';

/** What a status records of one registration. */
export interface RegistrationRecord {
  /** Undefined until the first allocation was persisted. */
  ref?: TemplateRef | undefined;
  /** When the current allocation was persisted, milliseconds since the epoch. */
  startedAt: number;
  /** True when a failed attempt is due again (its `retryAt` passed). */
  retryFailed?: boolean;
  /** Ids in the other slots and in the ledger. */
  held: ReadonlySet<string>;
}

/** What to do with the status after one step. */
export type Advance =
  /** Write the ref and a new startedAt, then call again; nothing else may come between. */
  | { step: 'persist'; ref: TemplateRef }
  /** Ask again in a few seconds. */
  | { step: 'wait'; message: string; progress?: number }
  /** Promote; `duplicates` go to `retired` as Deleting in the same write. */
  | { step: 'ready'; ref: TemplateRef; duplicates: TemplateRef[]; degraded?: string }
  /** Retry later or Failed, as its policy says. */
  | { step: 'failed'; failure: BuildFailure };

/**
 * One step of a registration, from the record alone: safe to repeat and to abandon at any await.
 * The caller reads its object live before (invariant I2) and bounds the number of attempts.
 */
export async function advance(
  engine: SandboxEngine,
  spec: RegisterSpec,
  record: RegistrationRecord,
  now: number,
  signal: AbortSignal,
): Promise<Advance> {
  const { ref, held } = record;
  const allocate = async (): Promise<Advance> => ({
    step: 'persist',
    ref: await engine.allocate(spec, { held, previous: ref }, signal),
  });
  if (!ref) return allocate();

  const polled = await engine.poll(ref, signal);
  const times = { startedAt: record.startedAt, now, deadlineMs: engine.buildDeadlineMs };
  const state = withBuildDeadline(engine.kind, polled, times);
  switch (state.phase) {
    case 'Absent':
      return allocate();
    case 'Failed':
      return record.retryFailed ? allocate() : { step: 'failed', failure: state.failure };
    case 'Allocated':
      if ((await engine.start(spec, ref, signal)) === 'absent') return allocate();
      return { step: 'wait', message: 'The engine has started to make the template.' };
    case 'Building':
      return {
        step: 'wait',
        message: state.message ?? 'The engine is making the template.',
        ...(state.progress !== undefined && { progress: state.progress }),
      };
    case 'Ready':
    case 'Degraded':
      return {
        step: 'ready',
        ref,
        duplicates: await engine.duplicates(ref, held, signal),
        ...(state.phase === 'Degraded' && { degraded: state.message }),
      };
  }
}
