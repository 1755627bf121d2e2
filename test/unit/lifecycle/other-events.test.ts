import { describe, expect, test } from 'vitest';
import type { Context, Event, Slots } from '../../../src/lifecycle/slots.ts';
import { transition } from '../../../src/lifecycle/transition.ts';
import { A, building, check, failed, NEW, PROMPT, queued, registering, slots } from './cells.ts';
import { candidate, context, deleting, kept, platform, unbuilt, version } from './helpers.ts';

describe('the other events', () => {
  check([
    {
      title: 'content turns invalid: the candidate is cancelled, nothing replaces it',
      from: { served: A, candidate: building },
      event: { type: 'ContentInvalid' },
      to: 'served A(i-A,t-A)',
      actions: ['CancelJob job-B'],
    },
    {
      title: 'content turns invalid: what was pushed goes to Deleting',
      from: { served: A, candidate: registering },
      event: { type: 'ContentInvalid' },
      to: 'served A(i-A,t-A) | Deleting B(i-B)',
    },
    {
      title: 'rebuild: a candidate of the same digest',
      from: { served: A },
      event: { type: 'Rebuild' },
      to: 'served A(i-A,t-A) | Queued A',
    },
    {
      title: 'rebuild of a failed candidate starts anew',
      from: { served: A, candidate: failed },
      event: { type: 'Rebuild' },
      to: 'served A(i-A,t-A) | Queued B',
    },
    {
      title: 'rebuild of what needs no image: no event',
      from: { served: version('A') },
      event: { type: 'Rebuild' },
      to: 'served A',
    },
    {
      title: 'suspend cancels the Job and puts the candidate back to Queued',
      from: { candidate: building },
      event: { type: 'Suspended' },
      to: 'Queued B',
      actions: ['CancelJob job-B'],
    },
    {
      title: 'suspend leaves Registering, which has no Job',
      from: { candidate: registering },
      event: { type: 'Suspended' },
      to: 'Registering B(i-B)',
    },
    {
      title: 'a template that the engine lost is registered again with the same image',
      from: { served: A },
      event: { type: 'TemplateLost', templateID: 't-A' },
      to: 'served A(i-A,t-A) | Registering A(i-A)',
    },
    {
      title: 'a lost template waits for a candidate that is on its way',
      from: { served: A, candidate: building },
      event: { type: 'TemplateLost', templateID: 't-A' },
      to: 'served A(i-A,t-A) | Building B',
    },
    {
      title: 'a lost template of another version: no event',
      from: { served: A },
      event: { type: 'TemplateLost', templateID: 't-Z' },
      to: 'served A(i-A,t-A)',
    },
    {
      title: 'a lost platform template is none of the slots',
      from: { served: platform('A') },
      event: { type: 'TemplateLost', templateID: 'cube-tpl-py' },
      to: 'served A(cube-tpl-py)',
    },
    {
      title: 'a changed map rewrites served and Kept',
      from: { served: platform('A'), retired: [kept(platform('B'))] },
      event: { type: 'Tier1MapChanged', templateIDs: { 'cubesandbox::python': 'new' } },
      to: 'served A(new) | Kept B(new)',
      actions: ['VersionServed A→A'],
    },
    {
      title: 'a map that lost the runtime never unserves',
      from: { served: platform('A') },
      event: { type: 'Tier1MapChanged', templateIDs: {} },
      to: 'served A(cube-tpl-py)',
    },
    {
      title: 'a changed map leaves versions with their own image',
      from: { served: A },
      event: { type: 'Tier1MapChanged', templateIDs: { cubesandbox: 'x' } },
      to: 'served A(i-A,t-A)',
    },
    {
      title: 'a new entry in the map serves what waited for it',
      from: { candidate: candidate(version('A', 'cubesandbox::python'), 'Queued') },
      event: { type: 'Tier1MapChanged', templateIDs: { 'cubesandbox::python': 'new' } },
      to: 'served A(new)',
      actions: ['VersionServed -→A'],
    },
    {
      title: 'two serving: the younger is Held and keeps its ids',
      from: { served: A },
      event: { type: 'NameTaken' },
      ctx: { nameHolder: 'x' },
      to: 'Held A(i-A,t-A)',
    },
    {
      title: 'two serving: what the younger was building is cancelled',
      from: { served: A, candidate: building },
      event: { type: 'NameTaken' },
      ctx: { nameHolder: 'x' },
      to: 'Held A(i-A,t-A)',
      actions: ['CancelJob job-B'],
    },
    {
      title: 'a name that is taken says nothing to a Building candidate',
      from: { candidate: building },
      event: { type: 'NameTaken' },
      ctx: { nameHolder: 'x' },
      to: 'Building B',
    },
  ]);
});

describe('a Queued candidate says why it waits', () => {
  const why = (event: Event, ctx: Partial<Context>, from: Partial<Slots> = {}) => {
    const { candidate: c } = transition(slots(from), event, context(ctx)).slots;
    return `${c?.reason}: ${c?.message}`;
  };
  test('for builds that are not configured', () => {
    expect(why(NEW('A'), { buildsConfigured: false })).toMatchInlineSnapshot(
      `"BuildNotConfigured: runtime cubesandbox brings its own image and this installation has no image builds configured; use runtime cubesandbox::python or cubesandbox::node without a Dockerfile, or ask the administrator to configure builds"`,
    );
  });
  test('for a platform template', () => {
    expect(why({ type: 'NewDigest', version: version('A', 'e2b::node') }, {})).toMatchInlineSnapshot(
      `"TemplateNotConfigured: the operator's map of platform templates has no entry for runtime e2b::node; ask the administrator to add it to the operator's settings"`,
    );
  });
  test('for the removal of the same content', () => {
    expect(why(NEW('A'), {}, { retired: [deleting(A)] })).toMatchInlineSnapshot(
      `"RemovalPending: an earlier image or template of the same content is still being removed; the build starts when it is gone"`,
    );
    expect(why(NEW('A'), { ledgerDigests: ['A'] })).toContain('RemovalPending');
  });
  test('for its name', () => {
    expect(why(PROMPT('A'), { nameHolder: 'team.web.pdf' })).toMatchInlineSnapshot(
      `"NameConflict: Skill team.web.pdf of this namespace holds the same name; delete that Skill, or rename the directory of this one together with its name field"`,
    );
  });
  test('and stops saying it when the reason is gone', () => {
    const waits = transition(slots({}), NEW('A'), context({ buildsConfigured: false })).slots;
    expect(transition(waits, NEW('A'), context()).slots.candidate).toEqual(candidate(unbuilt('A'), 'Queued'));
  });
  test('also while its Job does not get on, until it does', () => {
    const building = candidate(unbuilt('A'), 'Building', { jobName: 'job', attempt: 1 });
    const event: Event = { type: 'Blocked', reason: 'BuildUnschedulable', message: 'm' };
    const blocked = transition(slots({ candidate: building }), event, context()).slots;
    expect(blocked.candidate).toEqual({ ...building, reason: 'BuildUnschedulable', message: 'm' });
    expect(transition(blocked, { type: 'Unblocked' }, context()).slots.candidate).toEqual(building);
    const retrying = candidate(unbuilt('A'), 'Building', { attempt: 1, reason: 'BuildOutOfMemory', message: 'm' });
    expect(transition(slots({ candidate: retrying }), { type: 'Unblocked' }, context()).changed).toBe(false);
  });
  test('and keeps a reason that came from outside', () => {
    const event: Event = { type: 'Blocked', reason: 'EngineUnavailable', message: 'm' };
    const waits = transition(slots({ candidate: queued }), event, context()).slots;
    expect(transition(waits, NEW('B'), context()).slots.candidate).toMatchObject({ reason: 'EngineUnavailable' });
  });
});
