import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { atOnce, inSlices, paced, type Steps } from '../../../src/base/slices.ts';

function* collect(count: number): Steps<number[]> {
  const seen: number[] = [];
  yield* paced(Array(count).keys(), (item) => {
    seen.push(item);
  });
  return seen;
}

test.each([0, 1, 128, 129, 1000])('%i items all come, in order, whichever way they are driven', async (count) => {
  const all = [...Array(count).keys()];
  expect(atOnce(collect(count))).toEqual(all);
  expect(await inSlices(collect(count), new AbortController().signal)).toEqual(all);
});

test('other work gets its turn between two slices', async () => {
  let turns = 0;
  let done = false;
  const steps = inSlices(collect(1000), new AbortController().signal).finally(() => {
    done = true;
  });
  while (!done) {
    await setImmediate();
    turns++;
  }
  await steps;
  expect(turns).toBeGreaterThanOrEqual(7);
});

test('an abort ends it at the next pause, with the reason', async () => {
  const abort = new AbortController();
  const steps = inSlices(collect(1000), abort.signal);
  abort.abort(new Error('enough'));
  await expect(steps).rejects.toThrow('enough');
});

test('what the work throws comes out', async () => {
  function* broken(): Steps<void> {
    yield* paced([1], () => {
      throw new Error('no');
    });
  }
  await expect(inSlices(broken(), new AbortController().signal)).rejects.toThrow('no');
  expect(() => atOnce(broken())).toThrow('no');
});
