import { expect, test } from 'vitest';
import type { Action, Context, Event, Slots } from '../../../src/lifecycle/slots.ts';
import { transition } from '../../../src/lifecycle/transition.ts';
import { candidate, context, deleting, own, show, unbuilt, version } from './helpers.ts';

/** One cell of the slot table: slots and event give slots (as `show` prints them) and actions. */
interface Cell {
  title: string;
  from: Partial<Slots>;
  event: Event;
  ctx?: Partial<Context>;
  to: string;
  actions?: string[];
}

export const slots = (from: Partial<Slots>): Slots => ({ retired: [], ...from });

const showAction = (action: Action): string => {
  if (action.type === 'CancelJob') return `CancelJob ${action.jobName}`;
  if (action.type === 'VersionServed') return `VersionServed ${action.from?.digest ?? '-'}→${action.to.digest}`;
  return `Ledger ${action.entry.digest} ${action.why}`;
};

export const NEW = (digest: string): Event => ({ type: 'NewDigest', version: unbuilt(digest) });
export const PROMPT = (digest: string): Event => ({ type: 'NewDigest', version: version(digest) });
export const TRANSIENT: Event = {
  type: 'TransientFailure',
  retryAt: '2026-01-01T00:01:00Z',
  reason: 'EngineBusy',
  message: 'm',
};
export const TERMINAL: Event = { type: 'TerminalFailure', reason: 'EngineBuildFailed', message: 'm', logTail: 'log' };
export const DONE: Event = { type: 'BuildDone', image: 'i-B' };
export const REGISTERED: Event = { type: 'Registered', templateID: 't-B' };
export const DELETED: Event = { type: 'Deleted' };

export const queued = candidate(unbuilt('B'), 'Queued');
export const building = candidate(unbuilt('B'), 'Building', { jobName: 'job-B', attempt: 1, buildID: 'x' });
export const registering = candidate({ ...unbuilt('B'), image: 'i-B' }, 'Registering', { attempt: 1 });
export const heldOwn = candidate(own('B'), 'Held');
export const heldPlain = candidate(version('B'), 'Held');
export const failed = candidate(unbuilt('B'), 'Failed', { reason: 'EngineBuildFailed', message: 'old' });
export const A = own('A');

export const entryOf = (digest: string) => ({ digest, image: `i-${digest}`, templateID: `t-${digest}` });
export const eleven = Array.from({ length: 10 }, (_, i) => deleting(own(`D${i}`)));

/** One test per cell: the next slots, what is to be done once, and that the same event again changes nothing. */
export function check(cells: Cell[]): void {
  test.each(cells)('$title', ({ from, event, ctx, to, actions = [] }) => {
    const step = transition(slots(from), event, context(ctx));
    expect({ to: show(step.slots), actions: step.actions.map(showAction) }).toEqual({ to, actions });
    const again = transition(step.slots, event, context(ctx));
    expect({ to: show(again.slots), changed: again.changed }).toEqual({ to, changed: false });
  });
}
