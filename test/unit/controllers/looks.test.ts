import { expect, it } from 'vitest';
import type { Skill } from '../../../src/api/skill.ts';
import { Looks } from '../../../src/controllers/skill/looks.ts';
import { FakeClock } from '../kube/fake-clock.ts';

const resolved = { commit: 'c', revision: 'main@sha1:c', fetchRef: 'refs/heads/main' };
const skill = (changes: object = {}) =>
  ({ metadata: { name: 's', namespace: 'ns', uid: 'u', generation: 1, ...changes } }) as Skill;

it('counts for an interval, for the same spec and request of the same object', async () => {
  const clock = new FakeClock();
  const looks = new Looks(clock);
  expect(looks.last(skill(), 1_000)).toBeUndefined();
  looks.learn(skill(), resolved);
  await clock.advance(999);
  expect(looks.last(skill(), 1_000)).toEqual({ resolved, ageMs: 999 });
  const requested = { annotations: { 'skills.tfrobot.io/requestedAt': '1' } };
  for (const changes of [{ generation: 2 }, { uid: 'v' }, { name: 't' }, { namespace: 'o' }, requested]) {
    expect(looks.last(skill(changes), 1_000)).toBeUndefined();
  }
  await clock.advance(1);
  expect(looks.last(skill(), 1_000)).toBeUndefined();
  looks.learn(skill(requested), resolved);
  expect(looks.last(skill(requested), 1_000)).toEqual({ resolved, ageMs: 0 });
  looks.forget('ns/s');
  expect(looks.last(skill(requested), 1_000)).toBeUndefined();
});
