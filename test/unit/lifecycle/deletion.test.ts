import { describe } from 'vitest';
import { A, building, check, DELETED, failed, heldOwn, PROMPT, queued, registering } from './cells.ts';
import { deleting, kept, own, platform } from './helpers.ts';

describe('deleted', () => {
  const orphan = { deletionPolicy: 'Orphan' } as const;
  check([
    { title: 'Queued is dropped', from: { candidate: queued }, event: DELETED, to: 'empty' },
    {
      title: 'Building is dropped, its Job cancelled',
      from: { candidate: building },
      event: DELETED,
      to: 'empty',
      actions: ['CancelJob job-B'],
    },
    {
      title: 'Building with a pushed image: to Deleting',
      from: { candidate: { ...building, image: 'i-B' } },
      event: DELETED,
      to: 'Deleting B(i-B)',
      actions: ['CancelJob job-B'],
    },
    {
      title: 'Building with a pushed image: left if Orphan, the Job cancelled all the same',
      from: { candidate: { ...building, image: 'i-B' } },
      event: DELETED,
      ctx: orphan,
      to: 'empty',
      actions: ['CancelJob job-B'],
    },
    { title: 'Registering: to Deleting', from: { candidate: registering }, event: DELETED, to: 'Deleting B(i-B)' },
    {
      title: 'Registering: left if Orphan',
      from: { candidate: registering },
      event: DELETED,
      ctx: orphan,
      to: 'empty',
    },
    { title: 'Held: to Deleting', from: { candidate: heldOwn }, event: DELETED, to: 'Deleting B(i-B,t-B)' },
    { title: 'Held: left if Orphan', from: { candidate: heldOwn }, event: DELETED, ctx: orphan, to: 'empty' },
    { title: 'Failed is dropped', from: { candidate: failed }, event: DELETED, to: 'empty' },
    { title: 'served: to Deleting', from: { served: A }, event: DELETED, to: 'Deleting A(i-A,t-A)' },
    { title: 'served: left if Orphan', from: { served: A }, event: DELETED, ctx: orphan, to: 'empty' },
    {
      title: 'served on a platform template owns nothing',
      from: { served: platform('A') },
      event: DELETED,
      to: 'empty',
    },
    { title: 'Kept: to Deleting', from: { retired: [kept(A)] }, event: DELETED, to: 'Deleting A(i-A,t-A)' },
    { title: 'Kept: left if Orphan', from: { retired: [kept(A)] }, event: DELETED, ctx: orphan, to: 'empty' },
    { title: 'Deleting waits', from: { retired: [deleting(A)] }, event: DELETED, to: 'Deleting A(i-A,t-A)' },
    {
      title: 'Deleting waits even if Orphan: it was to be deleted before',
      from: { retired: [deleting(A)] },
      event: DELETED,
      ctx: orphan,
      to: 'Deleting A(i-A,t-A)',
    },
    {
      title: 'when the time is up, what is left goes to the ledger',
      from: { retired: [deleting(A)] },
      event: { type: 'DeletionExpired' },
      ctx: { deleting: true },
      to: 'empty',
      actions: ['Ledger A DeletionExpired'],
    },
    {
      title: 'an image that two slots share is deleted once',
      from: { served: own('B'), candidate: registering },
      event: DELETED,
      to: 'Deleting B(i-B,t-B)',
    },
    {
      title: 'nothing new begins once the Skill is being deleted',
      from: { retired: [deleting(A)] },
      event: PROMPT('B'),
      ctx: { deleting: true },
      to: 'Deleting A(i-A,t-A)',
    },
  ]);
});
