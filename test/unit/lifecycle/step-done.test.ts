import { describe } from 'vitest';
import {
  A,
  building,
  check,
  DONE,
  eleven,
  entryOf,
  heldOwn,
  PROMPT,
  queued,
  REGISTERED,
  registering,
} from './cells.ts';
import { deleting, kept, own, platform, version } from './helpers.ts';

describe('step done', () => {
  check([
    {
      title: 'Queued starts building',
      from: { candidate: queued },
      event: { type: 'BuildStarted', jobName: 'job-B', buildID: 'x' },
      to: 'Building B',
    },
    {
      title: 'Building with a confirmed digest goes to Registering',
      from: { candidate: building },
      event: DONE,
      to: 'Registering B(i-B)',
    },
    {
      title: 'Building the very image that is being removed goes back to Queued',
      from: { candidate: building, retired: [deleting(own('Z', { image: 'i-B' }))] },
      event: DONE,
      to: 'Queued B | Deleting Z(i-B,t-Z)',
    },
    {
      title: 'a template that is named but not ready keeps Registering',
      from: { candidate: registering },
      event: { type: 'TemplateCreated', templateID: 't-B' },
      to: 'Registering B(i-B,t-B)',
    },
    {
      title: 'Registering is promoted and served goes to Kept in one write',
      from: { served: A, candidate: registering },
      event: REGISTERED,
      to: 'served B(i-B,t-B) | Kept A(i-A,t-A)',
      actions: ['VersionServed A→B'],
    },
    {
      title: 'beyond the history limit the older one goes to Deleting',
      from: { served: A, candidate: registering, retired: [kept(own('Z'))] },
      event: REGISTERED,
      to: 'served B(i-B,t-B) | Kept A(i-A,t-A) | Deleting Z(i-Z,t-Z)',
      actions: ['VersionServed A→B'],
    },
    {
      title: 'a limit of 0 keeps nothing',
      from: { served: A, candidate: registering },
      event: REGISTERED,
      ctx: { historyLimit: 0 },
      to: 'served B(i-B,t-B) | Deleting A(i-A,t-A)',
      actions: ['VersionServed A→B'],
    },
    {
      title: 'beyond the limit an entry without an image is dropped in the promote write',
      from: { served: version('B'), retired: [kept(version('A'))] },
      event: PROMPT('C'),
      to: 'served C | Kept B',
      actions: ['VersionServed B→C'],
    },
    {
      title: 'ids of platform templates never go to Deleting',
      from: { served: platform('B'), retired: [kept(platform('A'))] },
      event: PROMPT('C'),
      to: 'served C | Kept B(cube-tpl-py)',
      actions: ['VersionServed B→C'],
    },
    {
      title: 'Registering is Held while another Skill has the name',
      from: { candidate: registering },
      event: REGISTERED,
      ctx: { nameHolder: 'x' },
      to: 'Held B(i-B,t-B)',
    },
    {
      title: 'Held is promoted when the name is free',
      from: { candidate: heldOwn },
      event: { type: 'NameFree' },
      to: 'served B(i-B,t-B)',
      actions: ['VersionServed -→B'],
    },
    {
      title: 'Held stays while the name is taken',
      from: { candidate: heldOwn },
      event: { type: 'NameFree' },
      ctx: { nameHolder: 'x' },
      to: 'Held B(i-B,t-B)',
    },
    {
      title: 'a rebuild is promoted and the old one goes to Deleting',
      from: { served: own('B', { image: 'i-old', templateID: 't-old' }), candidate: registering },
      event: REGISTERED,
      to: 'served B(i-B,t-B) | Deleting B(i-old,t-old)',
      actions: ['VersionServed B→B'],
    },
    {
      title: 'a rebuild that gives the same image and template deletes nothing',
      from: { served: own('B'), candidate: registering },
      event: REGISTERED,
      to: 'served B(i-B,t-B)',
      actions: ['VersionServed B→B'],
    },
    {
      title: 'Deleting that is gone is removed',
      from: { served: A, retired: [deleting(own('Z')), kept(own('Y'))] },
      event: { type: 'RetiredGone', entry: entryOf('Z') },
      to: 'served A(i-A,t-A) | Kept Y(i-Y,t-Y)',
    },
    {
      title: 'a Kept entry is never removed by that',
      from: { retired: [kept(own('Z'))] },
      event: { type: 'RetiredGone', entry: entryOf('Z') },
      to: 'Kept Z(i-Z,t-Z)',
    },
    {
      title: 'a smaller limit sends Kept entries to Deleting',
      from: { served: A, retired: [kept(own('Y')), kept(own('Z'))] },
      event: { type: 'LimitChanged' },
      to: 'served A(i-A,t-A) | Kept Y(i-Y,t-Y) | Deleting Z(i-Z,t-Z)',
    },
    {
      title: 'an eleventh entry sends the oldest Deleting to the ledger',
      from: { served: A, candidate: registering, retired: eleven },
      event: REGISTERED,
      to: `served B(i-B,t-B) | Kept A(i-A,t-A) | ${eleven
        .slice(0, 9)
        .map((e) => `Deleting ${e.digest}(${e.image},${e.templateID})`)
        .join(' | ')}`,
      actions: ['Ledger D9 Overflow', 'VersionServed A→B'],
    },
  ]);
});
