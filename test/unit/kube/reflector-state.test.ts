import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ReflectorInput, type ReflectorState, START, step } from '../../../src/kube/reflector-state.ts';

const watching = (over: Partial<ReflectorState> = {}): ReflectorState =>
  ({ phase: 'watch', resourceVersion: '5', waitMs: 0, failures: 0, barren: 0, ...over }) as ReflectorState;
const failed = (over: Partial<Extract<ReflectorInput, { type: 'watch-failed' }>> = {}): ReflectorInput => ({
  type: 'watch-failed',
  resourceVersion: '7',
  livedMs: 1000,
  frames: 1,
  code: 0,
  ...over,
});

const cases: [string, ReflectorState, ReflectorInput, Partial<ReflectorState> & { resourceVersion?: string }][] = [
  [
    'a list starts the watch at once',
    START,
    { type: 'listed', resourceVersion: '5' },
    { phase: 'watch', resourceVersion: '5', waitMs: 0 },
  ],
  ['a failed list backs off', START, { type: 'list-failed' }, { phase: 'list', waitMs: 800, failures: 1 }],
  [
    'the next failure waits twice as long',
    { ...START, failures: 1 },
    { type: 'list-failed' },
    { waitMs: 1600, failures: 2 },
  ],
  ['never more than 30 s', { ...START, failures: 20 }, { type: 'list-failed' }, { waitMs: 30_000 }],
  ['but as long as the server asks', START, { type: 'list-failed', retryAfterMs: 45_000 }, { waitMs: 45_000 }],
  [
    'a list does not end the back-off: a watch that always fails stays slow',
    { ...START, failures: 3 },
    { type: 'listed', resourceVersion: '5' },
    { failures: 3 },
  ],
  [
    'a watch at its end is reopened at once',
    watching(),
    { type: 'watch-closed', resourceVersion: '9', livedMs: 290_000, frames: 4 },
    { phase: 'watch', resourceVersion: '9', waitMs: 0 },
  ],
  [
    '120 s of health end the back-off',
    watching({ failures: 6 }),
    { type: 'watch-closed', resourceVersion: '9', livedMs: 120_000, frames: 0 },
    { waitMs: 0, failures: 0 },
  ],
  [
    'less does not',
    watching({ failures: 6 }),
    { type: 'watch-closed', resourceVersion: '9', livedMs: 60_000, frames: 0 },
    { waitMs: 0, failures: 6 },
  ],
  [
    'a watch closed at once counts as a failure',
    watching(),
    { type: 'watch-closed', resourceVersion: '9', livedMs: 10, frames: 0 },
    { phase: 'watch', waitMs: 800, failures: 1 },
  ],
  [
    'a broken connection goes on from the last version seen',
    watching(),
    failed(),
    { phase: 'watch', resourceVersion: '7', waitMs: 800 },
  ],
  ['so does a 500', watching(), failed({ code: 500 }), { phase: 'watch', resourceVersion: '7' }],
  ['a 429 waits as asked', watching(), failed({ code: 429, retryAfterMs: 3000 }), { phase: 'watch', waitMs: 3000 }],
  [
    'a 401 does not throw the version away',
    watching(),
    failed({ code: 401 }),
    { phase: 'watch', resourceVersion: '7' },
  ],
  ['410 lists again', watching(), failed({ code: 410 }), { phase: 'list', waitMs: 800, failures: 1 }],
  ['404 (the CRD is gone) lists again', watching(), failed({ code: 404 }), { phase: 'list' }],
  [
    'four failures without a frame still resume',
    watching({ barren: 3 }),
    failed({ frames: 0 }),
    { phase: 'watch', barren: 4 },
  ],
  ['the fifth lists again', watching({ barren: 4 }), failed({ frames: 0 }), { phase: 'list', barren: 0 }],
  [
    'a frame in between starts that count again',
    watching({ barren: 4 }),
    failed({ frames: 1 }),
    { phase: 'watch', barren: 0 },
  ],
];

describe('the reflector', () => {
  test.each(cases)('%s', (_name, state, input, want) => {
    expect(step(state, input, 0)).toMatchObject(want);
  });

  const input: fc.Arbitrary<ReflectorInput> = fc.oneof(
    fc.record({ type: fc.constant('listed' as const), resourceVersion: fc.constant('1') }),
    fc.record({ type: fc.constant('list-failed' as const) }),
    fc.record({
      type: fc.constant('watch-closed' as const),
      resourceVersion: fc.constant('2'),
      livedMs: fc.constantFrom(0, 1, 6000, 290_000),
      frames: fc.nat(3),
    }),
    fc.record({
      type: fc.constant('watch-failed' as const),
      resourceVersion: fc.constant('3'),
      livedMs: fc.constantFrom(0, 1, 6000, 290_000),
      frames: fc.nat(3),
      code: fc.constantFrom(0, 400, 401, 404, 410, 429, 500, 503),
    }),
  );

  test('asks at most once a second on average, whatever the server does', () => {
    fc.assert(
      fc.property(
        fc.array(input, { minLength: 40, maxLength: 80 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (inputs, random) => {
          let state = START;
          let elapsed = 0;
          let requests = 0;
          for (const next of inputs) {
            // Only what can follow in that phase.
            if (next.type.startsWith('list') !== (state.phase === 'list')) continue;
            requests++;
            elapsed += 'livedMs' in next ? next.livedMs : 0;
            state = step(state, next, random);
            elapsed += state.waitMs;
          }
          // A first list, its watch and the first quick failures are the burst that is allowed.
          expect(requests).toBeLessThanOrEqual(elapsed / 1000 + 4);
        },
      ),
    );
  });
});
