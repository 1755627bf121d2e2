import { expect, test } from 'vitest';
import type { Candidate, Skill } from '../../../src/api/skill.ts';
import { BUILDING, BuildSlots, isBuilding } from '../../../src/controllers/byo/slots.ts';
import { Cache } from '../../../src/kube/store.ts';
import { FakeClock } from '../kube/fake-clock.ts';
import { served, skill } from './objects.ts';

const own = (name: string, phase: Candidate['phase'], more: Partial<Candidate> = {}, resourceVersion = '1'): Skill =>
  skill(name, {}, { resourceVersion }, { candidate: { ...served(), runtime: 'e2b', phase, ...more } });

/** Slots over a cache that tells them of every change, as the manager has it. */
function setUp(total: number, perNamespace = total) {
  const cache = new Cache<Skill>({
    indexes: { [BUILDING]: (object) => (isBuilding(object) ? ['true'] : []) },
  });
  const woken: string[] = [];
  const slots = new BuildSlots(cache, { total, perNamespace }, new FakeClock(), (key) => woken.push(key));
  let version = 1;
  const show = (name: string, phase: Candidate['phase'], more: Partial<Candidate> = {}) => {
    const object = own(name, phase, more, String(++version));
    cache.put(object, 'stream');
    slots.settle(object, false);
  };
  return { slots, show, woken };
}

test('a yes takes the slot before the status shows it', () => {
  const { slots } = setUp(1);
  expect(slots.ask(own('a', 'Queued'))).toEqual({ start: true });
  expect(slots.ask(own('b', 'Queued'))).toMatchObject({ start: false, message: expect.stringContaining('build') });
});

test('a start is noted until the status shows it, whatever else changes meanwhile', () => {
  const { slots } = setUp(1);
  slots.ask(own('a', 'Queued'));
  // The finalizer's write, for example, of a Skill that has no status yet.
  slots.settle(skill('a'), false);
  expect(slots.ask(own('b', 'Queued'))).toMatchObject({ start: false });
});

test('a Skill whose start never reached its status asks again and is not in its own way', () => {
  const { slots } = setUp(1);
  slots.ask(own('a', 'Queued'));
  slots.begin(own('a', 'Queued'), true);
  expect(slots.ask(own('a', 'Queued'))).toEqual({ start: true });
  expect(slots.ask(own('b', 'Queued'))).toMatchObject({ start: false });
});

test('a Skill that cannot use its turn lets the next one go first', () => {
  const { slots, show, woken } = setUp(1);
  slots.ask(own('a', 'Queued'));
  show('a', 'Building', { jobName: 'job' });
  slots.ask(own('b', 'Queued'));
  slots.ask(own('c', 'Queued'));
  show('a', 'Registering');
  expect(woken).toEqual(['ns/b']);
  slots.yieldTurn(own('b', 'Queued'));
  expect(woken).toEqual(['ns/b', 'ns/c']);
  expect(slots.ask(own('c', 'Queued'))).toEqual({ start: true });
});

test('what has nothing to build any more leaves the line', () => {
  const { slots, woken } = setUp(1);
  slots.ask(own('a', 'Queued'));
  slots.ask(own('b', 'Queued'));
  slots.ask(own('c', 'Queued'));
  slots.begin(own('b', 'Queued'), false);
  expect(woken).toEqual([]);
  slots.begin(own('a', 'Queued'), false);
  slots.settle(own('a', 'Queued'), false);
  expect(woken).toEqual(['ns/c']);
});

test('a build that ended frees its slot and wakes who waits', () => {
  const { slots, show, woken } = setUp(1);
  slots.ask(own('a', 'Queued'));
  show('a', 'Building', { jobName: 'job' });
  slots.ask(own('b', 'Queued'));
  expect(woken).toEqual([]);
  show('a', 'Registering');
  expect(woken).toEqual(['ns/b']);
  expect(slots.ask(own('b', 'Queued'))).toEqual({ start: true });
});

test('a start that came to nothing, and a Skill that is deleted, free the slot too', () => {
  const { slots } = setUp(1);
  slots.ask(own('a', 'Queued'));
  slots.release(own('a', 'Queued'));
  expect(slots.ask(own('b', 'Queued'))).toEqual({ start: true });
  slots.settle(own('b', 'Queued'), true);
  expect(slots.ask(own('c', 'Queued'))).toEqual({ start: true });
});
