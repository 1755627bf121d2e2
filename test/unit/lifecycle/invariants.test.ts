import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Version } from '../../../src/api/skill.ts';
import {
  type Context,
  type Event,
  needsFinalizer,
  type Slots,
  type Step,
  tierOf,
} from '../../../src/lifecycle/slots.ts';
import { transition } from '../../../src/lifecycle/transition.ts';
import { workOf } from '../../../src/lifecycle/work.ts';
import { context, platform, unbuilt, version } from './helpers.ts';

/** Any sequence of events, with ids that the world gives once and never again. */
const digests = ['A', 'B', 'C', 'D', 'E'] as const;
const runtimeOf: Record<string, (digest: string) => Version> = {
  A: unbuilt,
  B: unbuilt,
  C: unbuilt,
  D: (digest) => version(digest),
  E: (digest) => platform(digest),
};
const fixed = (type: Event['type']) => fc.constant({ type });
const move = fc.record({
  event: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...digests).map((digest) => ({ type: 'NewDigest', digest })) },
    ...(['BuildStarted', 'BuildDone', 'Registered'] as const).map((type) => ({ weight: 4, arbitrary: fixed(type) })),
    ...(
      ['TemplateCreated', 'ContentInvalid', 'TransientFailure', 'TerminalFailure', 'Rebuild', 'Suspended'] as const
    ).map(fixed),
    ...(['NameTaken', 'NameFree', 'TemplateLost', 'Tier1MapChanged', 'LimitChanged', 'Blocked'] as const).map(fixed),
    ...(['RetiredGone', 'RetiredInUse', 'RetiredFailed'] as const).map(fixed),
  ),
  holder: fc.option(fc.constant('other'), { freq: 4, nil: undefined }),
  historyLimit: fc.integer({ min: 0, max: 5 }),
});
const moves = fc.array(move, { maxLength: 60 });

const FAILURES = { reason: 'EngineBusy', message: 'm' };

/** The event of a move in the present slots; `n` makes every id new. */
function eventOf(type: string, digest: string | undefined, slots: Slots, n: number): Event {
  const doomed = slots.retired.find((entry) => entry.state === 'Deleting') ?? { digest: 'none' };
  const entry = { digest: doomed.digest, templateID: (doomed as Version).templateID, image: (doomed as Version).image };
  const events: Record<string, Event> = {
    BuildStarted: { type: 'BuildStarted', jobName: `job-${n}`, buildID: `b-${n}` },
    BuildDone: { type: 'BuildDone', image: `i-${n}` },
    Registered: { type: 'Registered', templateID: slots.candidate?.templateID ?? `t-${n}` },
    TemplateCreated: { type: 'TemplateCreated', templateID: slots.candidate?.templateID ?? `t-${n}` },
    TransientFailure: { type: 'TransientFailure', retryAt: context().now, ...FAILURES },
    TerminalFailure: { type: 'TerminalFailure', ...FAILURES },
    Blocked: { type: 'Blocked', ...FAILURES },
    TemplateLost: { type: 'TemplateLost', templateID: slots.served?.templateID ?? 'none' },
    Tier1MapChanged: { type: 'Tier1MapChanged', templateIDs: { 'cubesandbox::python': `map-${n}` } },
    RetiredGone: { type: 'RetiredGone', entry },
    RetiredInUse: { type: 'RetiredInUse', entry, retriesLeft: n % 2 === 0 },
    RetiredFailed: { type: 'RetiredFailed', entry },
  };
  if (type === 'NewDigest')
    return { type, version: (runtimeOf[digest ?? 'D'] as (d: string) => Version)(digest ?? 'D') };
  return events[type] ?? ({ type } as Event);
}

const ownIds = (versions: (Version | undefined)[]): Set<string> =>
  new Set(
    versions
      .flatMap((v) => (v && tierOf(v.runtime) === 2 ? [v.image, v.templateID] : []))
      .filter((id) => id !== undefined),
  );
const all = (slots: Slots) => [slots.served, slots.candidate, ...slots.retired];

interface Seen {
  before: Slots;
  event: Event;
  ctx: Context;
  step: Step;
}

/** Runs the moves and shows every step to `look`. */
function run(
  list: { event: { type: string; digest?: string }; holder?: string | undefined; historyLimit: number }[],
  look: (seen: Seen) => void,
): Slots {
  let slots: Slots = { retired: [] };
  list.forEach(({ event: { type, digest }, holder, historyLimit }, n) => {
    const ctx = context({ nameHolder: holder, historyLimit });
    const event = eventOf(type, digest, slots, n);
    const step = transition(slots, event, ctx);
    look({ before: slots, event, ctx, step });
    slots = step.slots;
  });
  return slots;
}

const property = (look: (seen: Seen) => void) =>
  fc.assert(
    fc.property(moves, (list) => void run(list, look)),
    { numRuns: 400 },
  );

describe('any sequence of events', () => {
  test('I13: the served version survives everything but a taken name', () => {
    property(({ before, event, step }) => {
      if (before.served && event.type !== 'NameTaken') expect(step.slots.served).toBeDefined();
    });
  });
  test('no external id is ever lost: it stays in a slot, goes to the ledger, or was reported gone', () => {
    property(({ before, event, step }) => {
      const after = ownIds(all(step.slots));
      const ledger = ownIds(step.actions.flatMap((a) => (a.type === 'LedgerEntry' ? [a.entry] : [])));
      const gone = event.type === 'RetiredGone' ? new Set([event.entry.image, event.entry.templateID]) : new Set();
      for (const id of ownIds(all(before))) expect(after.has(id) || ledger.has(id) || gone.has(id), id).toBe(true);
    });
  });
  test('no Job is ever lost: it stays in the candidate, is cancelled, or has ended', () => {
    property(({ before, event, step }) => {
      const job = before.candidate?.jobName;
      if (job === undefined || job === step.slots.candidate?.jobName) return;
      const ended = ['BuildDone', 'TransientFailure', 'TerminalFailure'].includes(event.type);
      expect(ended || step.actions.some((a) => a.type === 'CancelJob' && a.jobName === job)).toBe(true);
    });
  });
  test('I10: a template with its own image is never shown for another digest', () => {
    fc.assert(
      fc.property(moves, (list) => {
        const digestOf = new Map<string, string>();
        run(list, ({ step }) => {
          for (const v of all(step.slots)) {
            if (!v?.templateID || tierOf(v.runtime) !== 2) continue;
            expect(digestOf.get(v.templateID) ?? v.digest).toBe(v.digest);
            digestOf.set(v.templateID, v.digest);
          }
        });
      }),
      { numRuns: 400 },
    );
  });
  test('at most ten retired entries, at most the limit of them Kept after a promotion, and none of a platform in Deleting', () => {
    property(({ step, ctx }) => {
      const { retired } = step.slots;
      expect(retired.length).toBeLessThanOrEqual(10);
      if (step.actions.some((a) => a.type === 'VersionServed' && a.from?.digest !== a.to.digest))
        expect(retired.filter((e) => e.state === 'Kept').length).toBeLessThanOrEqual(ctx.historyLimit);
      for (const e of retired) if (e.state === 'Deleting') expect(tierOf(e.runtime)).toBe(2);
    });
  });
  test('nothing that is to be deleted is used by another slot', () => {
    property(({ step: { slots } }) => {
      const used = ownIds([slots.served, slots.candidate, ...slots.retired.filter((e) => e.state === 'Kept')]);
      for (const id of ownIds(slots.retired.filter((e) => e.state === 'Deleting')))
        expect(used.has(id), id).toBe(false);
    });
  });
  test('I1: the same event twice changes nothing the second time', () => {
    property(({ event, ctx, step }) => {
      // A report about one removed entry may fit its twin; a rebuild is asked for by a new value each time.
      if (['RetiredGone', 'RetiredInUse', 'RetiredFailed', 'Rebuild'].includes(event.type)) return;
      expect(transition(step.slots, event, ctx)).toMatchObject({ changed: false, actions: [] });
    });
  });
  test('the input is never changed', () => {
    fc.assert(
      fc.property(moves, (list) => {
        run(list, ({ before, event, ctx }) => {
          const copy = structuredClone(before);
          transition(before, event, ctx);
          expect(before).toEqual(copy);
        });
      }),
      { numRuns: 50 },
    );
  });
  test('the finalizer is asked away only when nothing is held, and deletion always ends', () => {
    fc.assert(
      fc.property(moves, fc.constantFrom('Delete' as const, 'Orphan' as const), (list, deletionPolicy) => {
        let slots = run(list, ({ step, ctx }) => {
          if (workOf(step.slots, ctx).some((w) => w.type === 'RemoveFinalizer'))
            expect(needsFinalizer(step.slots)).toBe(false);
        });
        const ctx = context({ deleting: true, deletionPolicy });
        slots = transition(slots, { type: 'Deleted' }, ctx).slots;
        for (let n = 0; slots.retired.length > 0 && n < 20; n++)
          slots = transition(slots, eventOf('RetiredGone', undefined, slots, n), ctx).slots;
        expect(workOf(slots, ctx)).toEqual([{ type: 'RemoveFinalizer' }]);
      }),
      { numRuns: 200 },
    );
  });
});
