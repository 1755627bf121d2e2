import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { openPlayedStage, type PlayedStage } from '../../support/byo/played.ts';
import { type ByoStage, LONG_MS } from '../../support/byo/stage.ts';
import { eventually } from '../../support/eventually.ts';
import { isReady } from '../../support/market.ts';

const info = inject('cluster');
const LIMIT = 3;
const SKILLS = 30;
const SLOW = { timeout: 10 * 60_000 };

/** The bounds of the settings, on everything real but the engines, the kubelet and Kaniko. */
describe('an installation with bounds', () => {
  let played: PlayedStage;
  let stage: ByoStage;
  beforeAll(async () => {
    const build = { limits: { total: LIMIT, perNamespace: LIMIT }, deadlines: { removalSeconds: 2 } };
    played = await openPlayedStage(info, { build });
    ({ stage } = played);
  });
  afterAll(() => played?.[Symbol.asyncDispose]());
  afterEach(() => stage.operator.check());

  test(`builds ${SKILLS} skills, never more than ${LIMIT} at once`, SLOW, async () => {
    const names = Array.from({ length: SKILLS }, (_, number) => `many-${number}`);
    const skills = names.map((name) => [name, stage.skill('e2b', name, stage.from(`RUN echo ${name}`))]);
    await stage.market('many', Object.fromEntries(skills));
    let most = 0;
    await eventually(
      async () => {
        most = Math.max(most, await stage.unfinishedJobs());
        const all = await Promise.all(names.map((name) => stage.k8s.get(stage.operator.skill(`many.p.${name}`))));
        return all.every((one) => one && isReady(one));
      },
      { timeoutMs: 4 * LONG_MS, what: `${SKILLS} Skills to be Ready`, intervalMs: 50 },
    );
    expect(most).toBe(LIMIT);
    expect(await stage.jobs()).toHaveLength(SKILLS);
  });

  test('lets a Skill go whose template stays in use, and removes the template when it can', SLOW, async () => {
    const skill = 'used.p.busy';
    const { source } = await stage.market('used', { busy: stage.skill('e2b', 'busy', stage.from('RUN true')) });
    const { served } = (await stage.until(skill, 'Ready', isReady)).status;
    stage.e2b.use(served.templateID, 'running');
    await stage.k8s.delete(source);
    await stage.k8s.waitGone(stage.operator.skill(skill), { timeoutMs: LONG_MS });
    const [entry] = await stage.ledger();
    expect(entry).toMatchObject({ skill, templateID: served.templateID, image: served.image });
    expect(await stage.hasImage(served.image)).toBe(true);
    expect(await stage.events()).toContainEqual(expect.objectContaining({ reason: 'RemovalPending', type: 'Warning' }));
    stage.e2b.use(served.templateID, undefined);
    // A new process reads the ledger and works it off.
    await stage.operator.restart();
    await eventually(async () => (await stage.ledger()).length === 0, { timeoutMs: LONG_MS, what: 'an empty ledger' });
    expect(stage.templates('e2b', 'busy')).toEqual([]);
    expect(await stage.images(skill, 'e2b')).toEqual([]);
  });
});
