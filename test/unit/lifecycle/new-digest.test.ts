import { describe } from 'vitest';
import { A, building, check, failed, heldOwn, heldPlain, NEW, PROMPT, queued, registering } from './cells.ts';
import { candidate, deleting, kept, own, platform, unbuilt, version } from './helpers.ts';

describe('new digest', () => {
  check([
    {
      title: 'a first prompt-only version is served at once',
      from: {},
      event: PROMPT('A'),
      to: 'served A',
      actions: ['VersionServed -→A'],
    },
    {
      title: 'a version on a platform template is served with its id',
      from: {},
      event: { type: 'NewDigest', version: platform('A') },
      to: 'served A(cube-tpl-py)',
      actions: ['VersionServed -→A'],
    },
    {
      title: 'without an entry in the map it waits in Queued',
      from: {},
      event: { type: 'NewDigest', version: version('A', 'cubesandbox::python') },
      to: 'Queued A',
    },
    { title: 'one with its own image starts in Queued', from: {}, event: NEW('A'), to: 'Queued A' },
    {
      title: 'while another Skill has the name, a ready one is Held',
      from: {},
      event: PROMPT('A'),
      ctx: { nameHolder: 'x' },
      to: 'Held A',
    },
    { title: 'Queued is replaced', from: { candidate: queued }, event: NEW('C'), to: 'Queued C' },
    {
      title: 'Building is cancelled and replaced',
      from: { candidate: building },
      event: NEW('C'),
      to: 'Queued C',
      actions: ['CancelJob job-B'],
    },
    {
      title: 'Registering goes to Deleting and is replaced',
      from: { candidate: registering },
      event: NEW('C'),
      to: 'Queued C | Deleting B(i-B)',
    },
    {
      title: 'Held with an image goes to Deleting and is replaced',
      from: { candidate: heldOwn },
      event: NEW('C'),
      to: 'Queued C | Deleting B(i-B,t-B)',
    },
    { title: 'Held without one is just replaced', from: { candidate: heldPlain }, event: NEW('C'), to: 'Queued C' },
    { title: 'Failed is replaced', from: { candidate: failed }, event: NEW('C'), to: 'Queued C' },
    {
      title: 'served stays until the new one is promoted',
      from: { served: A },
      event: NEW('B'),
      to: 'served A(i-A,t-A) | Queued B',
    },
    {
      title: 'served is replaced in one write when the new one needs no build',
      from: { served: version('A') },
      event: PROMPT('B'),
      to: 'served B | Kept A',
      actions: ['VersionServed A→B'],
    },
    {
      title: 'a runtime that changes is a new version like any other',
      from: { served: A },
      event: PROMPT('B'),
      to: 'served B | Kept A(i-A,t-A)',
      actions: ['VersionServed A→B'],
    },
    {
      title: 'a Kept digest returns: it swaps with served, no build',
      from: { served: own('B'), retired: [kept(A)] },
      event: NEW('A'),
      to: 'served A(i-A,t-A) | Kept B(i-B,t-B)',
      actions: ['VersionServed B→A'],
    },
    {
      title: 'a Kept digest returns and cancels the candidate',
      from: {
        served: own('B'),
        candidate: candidate(unbuilt('C'), 'Building', { jobName: 'job-C' }),
        retired: [kept(A)],
      },
      event: NEW('A'),
      to: 'served A(i-A,t-A) | Kept B(i-B,t-B)',
      actions: ['CancelJob job-C', 'VersionServed B→A'],
    },
    {
      title: 'a Deleting digest is never served again: it is built anew',
      from: { served: own('B'), retired: [deleting(A)] },
      event: NEW('A'),
      to: 'served B(i-B,t-B) | Queued A | Deleting A(i-A,t-A)',
    },
    {
      title: "the candidate's own digest again is no event",
      from: { candidate: building },
      event: NEW('B'),
      to: 'Building B',
    },
    {
      title: 'the own digest of a Failed candidate is no event: it is not built again',
      from: { candidate: failed },
      event: NEW('B'),
      to: 'Failed B',
    },
    {
      title: 'the served digest again cancels the candidate',
      from: { served: A, candidate: building },
      event: NEW('A'),
      to: 'served A(i-A,t-A)',
      actions: ['CancelJob job-B'],
    },
    {
      title: 'the served digest again is no event for its rebuild',
      from: { served: own('B'), candidate: building },
      event: NEW('B'),
      to: 'served B(i-B,t-B) | Building B',
    },
    {
      title: 'a Queued platform version is served when the map has its runtime',
      from: { candidate: candidate(version('A', 'cubesandbox::python'), 'Queued') },
      event: { type: 'NewDigest', version: platform('A') },
      to: 'served A(cube-tpl-py)',
      actions: ['VersionServed -→A'],
    },
  ]);
});
