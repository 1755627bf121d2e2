import { describe, expect, test } from 'vitest';
import type { Context, Slots, Work } from '../../../src/lifecycle/slots.ts';
import { needsFinalizer } from '../../../src/lifecycle/slots.ts';
import { workOf } from '../../../src/lifecycle/work.ts';
import { candidate, context, deleting, kept, own, platform, unbuilt, version } from './helpers.ts';

const showWork = (work: Work): string => {
  if (work.type === 'StartBuild') return `StartBuild ${work.digest} #${work.attempt}`;
  if (work.type === 'Register') return `Register ${work.digest} ${work.image}`;
  if (work.type === 'DeleteExternal') return `Delete ${work.entry.digest}`;
  return work.type;
};

const queued = candidate(unbuilt('B'), 'Queued');
const registering = candidate({ ...unbuilt('B'), image: 'i-B' }, 'Registering');
const cases: { title: string; slots: Partial<Slots>; ctx?: Partial<Context>; work: string[] }[] = [
  {
    title: 'a served prompt-only version asks for nothing',
    slots: { served: version('A') },
    ctx: { hasFinalizer: false },
    work: [],
  },
  {
    title: 'Queued: the finalizer comes directly before the first Job',
    slots: { candidate: queued },
    ctx: { hasFinalizer: false },
    work: ['AddFinalizer', 'StartBuild B #1'],
  },
  { title: 'Queued with the finalizer: the Job alone', slots: { candidate: queued }, work: ['StartBuild B #1'] },
  {
    title: 'Queued without configured builds: no Job and no finalizer',
    slots: { candidate: queued },
    ctx: { buildsConfigured: false, hasFinalizer: false },
    work: [],
  },
  {
    title: 'Queued while suspended waits',
    slots: { candidate: queued },
    ctx: { suspended: true, hasFinalizer: false },
    work: [],
  },
  {
    title: 'Queued waits for the removal of the same content',
    slots: { candidate: queued, retired: [deleting(own('B'))] },
    work: ['Delete B'],
  },
  {
    title: 'Queued waits for the ledger',
    slots: { candidate: queued },
    ctx: { ledgerDigests: ['B'], hasFinalizer: false },
    work: [],
  },
  {
    title: 'Building with a Job only waits for it',
    slots: { candidate: candidate(unbuilt('B'), 'Building', { jobName: 'j' }) },
    work: [],
  },
  {
    title: 'the next attempt waits for its time',
    slots: { candidate: candidate(unbuilt('B'), 'Building', { attempt: 1, retryAt: '2026-01-01T00:00:01Z' }) },
    work: [],
  },
  {
    title: 'the next attempt starts when it is due',
    slots: { candidate: candidate(unbuilt('B'), 'Building', { attempt: 1, retryAt: '2026-01-01T00:00:00Z' }) },
    work: ['StartBuild B #2'],
  },
  { title: 'Registering asks the engine', slots: { candidate: registering }, work: ['Register B i-B'] },
  {
    title: 'Registering while suspended asks nobody',
    slots: { candidate: registering },
    ctx: { suspended: true },
    work: [],
  },
  {
    title: 'removal goes on while suspended',
    slots: { retired: [deleting(own('A')), kept(own('C'))] },
    ctx: { suspended: true },
    work: ['Delete A'],
  },
  {
    title: 'the finalizer goes when no slot holds anything',
    slots: { served: platform('A') },
    work: ['RemoveFinalizer'],
  },
  {
    title: 'a Failed candidate holds nothing',
    slots: { candidate: candidate(unbuilt('B'), 'Failed') },
    work: ['RemoveFinalizer'],
  },
  { title: 'a Kept image keeps the finalizer', slots: { served: version('A'), retired: [kept(own('B'))] }, work: [] },
  {
    title: 'a deleted Skill removes what is left',
    slots: { retired: [deleting(own('A'))] },
    ctx: { deleting: true },
    work: ['Delete A'],
  },
  {
    title: 'a deleted Skill with nothing left is let go',
    slots: {},
    ctx: { deleting: true },
    work: ['RemoveFinalizer'],
  },
];

describe('workOf', () => {
  test.each(cases)('$title', ({ slots, ctx, work }) => {
    expect(workOf({ retired: [], ...slots }, context(ctx)).map(showWork)).toEqual(work);
  });
});

test('needsFinalizer counts Jobs, images and templates of own images, and no platform template', () => {
  expect(needsFinalizer({ retired: [], candidate: candidate(unbuilt('B'), 'Building') })).toBe(true);
  expect(needsFinalizer({ retired: [deleting(own('A'))] })).toBe(true);
  expect(needsFinalizer({ retired: [], served: platform('A'), candidate: queued })).toBe(false);
});
