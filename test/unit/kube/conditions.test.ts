import { describe, expect, test } from 'vitest';
import { getCondition, removeCondition, sameConditions, setCondition } from '../../../src/kube/conditions.ts';
import type { Condition } from '../../../src/kube/types.ts';

const EARLIER = '2030-01-01T00:00:00Z';
const NOW = '2030-01-02T00:00:00Z';
const ready: Condition = {
  type: 'Ready',
  status: 'True',
  reason: 'Succeeded',
  message: 'all good',
  observedGeneration: 1,
  lastTransitionTime: EARLIER,
};
const { lastTransitionTime: _, ...same } = ready;

describe('setCondition', () => {
  test.each([
    ['keeps the time while the status stays', { ...same, reason: 'Other', message: 'still good' }, EARLIER],
    ['keeps the time when only the generation moves', { ...same, observedGeneration: 2 }, EARLIER],
    ['moves the time with the status', { ...same, status: 'False' as const }, NOW],
  ])('%s', (_name, input, time) => {
    expect(setCondition([ready], input, NOW)).toEqual([{ ...input, lastTransitionTime: time }]);
  });

  test('returns the same list when nothing changes', () => {
    const list = [ready];
    expect(setCondition(list, same, NOW)).toBe(list);
  });

  test('adds a new type at the end and replaces in place', () => {
    const list = setCondition([ready], { ...same, type: 'Stalled' }, NOW);
    expect(list.map((c) => c.type)).toEqual(['Ready', 'Stalled']);
    expect(setCondition(list, { ...same, status: 'False' }, NOW).map((c) => c.type)).toEqual(['Ready', 'Stalled']);
  });

  test('cuts a long message at a character and redacts it', () => {
    const [long] = setCondition([], { ...same, message: `${'x'.repeat(1022)}😀 and more` }, NOW);
    expect(long?.message.length).toBeLessThanOrEqual(1024);
    expect(long?.message.endsWith('x…')).toBe(true);
    const [secret] = setCondition([], { ...same, message: 'clone https://u:hunter22@git.example/x' }, NOW);
    expect(secret?.message).toBe('clone https://***@git.example/x');
  });
});

test('removeCondition takes the type out and leaves a list without it alone', () => {
  const list = [ready];
  expect(removeCondition(list, 'Ready')).toEqual([]);
  expect(removeCondition(list, 'Stalled')).toBe(list);
  expect(getCondition(list, 'Ready')).toBe(ready);
  expect(getCondition(undefined, 'Ready')).toBeUndefined();
});

test.each([
  ['the same in another order', [ready, { ...ready, type: 'B' }], [{ ...ready, type: 'B' }, ready], true],
  ['one more', [ready], [ready, { ...ready, type: 'B' }], false],
  ['another message', [ready], [{ ...ready, message: 'x' }], false],
  ['another time', [ready], [{ ...ready, lastTransitionTime: NOW }], false],
  ['another generation', [ready], [{ ...ready, observedGeneration: 2 }], false],
])('sameConditions: %s', (_name, a, b, want) => expect(sameConditions(a, b)).toBe(want));
