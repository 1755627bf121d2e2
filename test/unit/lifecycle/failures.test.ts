import { describe, expect, test } from 'vitest';
import { transition } from '../../../src/lifecycle/transition.ts';
import {
  A,
  building,
  check,
  entryOf,
  failed,
  heldOwn,
  queued,
  registering,
  slots,
  TERMINAL,
  TRANSIENT,
} from './cells.ts';
import { context, deleting, own } from './helpers.ts';

describe('transient failure', () => {
  check([
    { title: 'Queued: no event', from: { candidate: queued }, event: TRANSIENT, to: 'Queued B' },
    { title: 'Building waits for its next attempt', from: { candidate: building }, event: TRANSIENT, to: 'Building B' },
    { title: 'Registering tries again', from: { candidate: registering }, event: TRANSIENT, to: 'Registering B(i-B)' },
    { title: 'Held: no event', from: { candidate: heldOwn }, event: TRANSIENT, to: 'Held B(i-B,t-B)' },
    { title: 'Failed: no event', from: { candidate: failed }, event: TRANSIENT, to: 'Failed B' },
    {
      title: 'served stays',
      from: { served: A, candidate: building },
      event: TRANSIENT,
      to: 'served A(i-A,t-A) | Building B',
    },
    {
      title: 'Deleting in use stays while there are tries left',
      from: { retired: [deleting(A)] },
      event: { type: 'RetiredInUse', entry: entryOf('A'), retriesLeft: true },
      to: 'Deleting A(i-A,t-A)',
    },
    {
      title: 'Deleting in use goes to the ledger in the end',
      from: { retired: [deleting(A)] },
      event: { type: 'RetiredInUse', entry: entryOf('A'), retriesLeft: false },
      to: 'empty',
      actions: ['Ledger A InUse'],
    },
  ]);
  test('the next attempt has its time and its reason, and no Job', () => {
    const { slots: next } = transition(slots({ candidate: building }), TRANSIENT, context());
    expect(next.candidate).toMatchObject({ attempt: 1, retryAt: '2026-01-01T00:01:00Z', reason: 'EngineBusy' });
    expect(next.candidate?.jobName).toBeUndefined();
    const started = transition(next, { type: 'BuildStarted', jobName: 'job-2', buildID: 'x' }, context());
    expect(started.slots.candidate).toMatchObject({ attempt: 2, jobName: 'job-2', startedAt: context().now });
    expect(started.slots.candidate?.reason).toBeUndefined();
  });
});

describe('terminal failure', () => {
  check([
    { title: 'Queued: no event', from: { candidate: queued }, event: TERMINAL, to: 'Queued B' },
    { title: 'Building becomes Failed', from: { candidate: building }, event: TERMINAL, to: 'Failed B' },
    {
      title: 'Registering becomes Failed, its image goes to Deleting',
      from: { candidate: registering },
      event: TERMINAL,
      to: 'Failed B | Deleting B(i-B)',
    },
    {
      title: 'template and image go to one Deleting entry',
      from: { candidate: { ...registering, templateID: 't-B' } },
      event: TERMINAL,
      to: 'Failed B | Deleting B(i-B,t-B)',
    },
    {
      title: 'what the served version shares is not deleted',
      from: { served: own('B'), candidate: registering },
      event: TERMINAL,
      to: 'served B(i-B,t-B) | Failed B',
    },
    { title: 'Held: no event', from: { candidate: heldOwn }, event: TERMINAL, to: 'Held B(i-B,t-B)' },
    { title: 'Failed stays and says why', from: { candidate: failed }, event: TERMINAL, to: 'Failed B' },
    {
      title: 'served stays',
      from: { served: A, candidate: building },
      event: TERMINAL,
      to: 'served A(i-A,t-A) | Failed B',
    },
    {
      title: 'Deleting goes to the ledger',
      from: { retired: [deleting(A)] },
      event: { type: 'RetiredFailed', entry: entryOf('A') },
      to: 'empty',
      actions: ['Ledger A Failed'],
    },
  ]);
  test('the candidate carries reason, message and the end of the log', () => {
    const { slots: next } = transition(slots({ candidate: building }), TERMINAL, context());
    expect(next.candidate).toMatchObject({
      phase: 'Failed',
      reason: 'EngineBuildFailed',
      message: 'm',
      logTail: 'log',
    });
  });
});
