import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { EngineName } from '../../support/byo/parts.ts';
import { type ByoStage, LONG_MS, openByoStage } from '../../support/byo/stage.ts';
import { eventually } from '../../support/eventually.ts';
import { condition, type K8sObject } from '../../support/k8s.ts';
import { isReady, skillMd } from '../../support/market.ts';
import { AuditedEffects } from './effects.ts';

const { node, ...info } = inject('cluster');
const ENGINES: readonly EngineName[] = ['e2b', 'cubesandbox'];
/** One edition of both skills costs more effects than that; every single point has its turn in test/integration/byo. */
const LAST = 17;
const STEP = 8;

describe.skipIf(!node)('an operator that is killed', () => {
  if (!node) return;
  let stage: ByoStage;
  let effects: AuditedEffects;
  beforeAll(async () => {
    stage = await openByoStage(info, node);
    effects = new AuditedEffects(info, stage.operator.account.namespace);
    stage.onEngineWrite(() => void effects.add('engine'));
  });
  afterAll(async () => {
    effects?.close();
    await stage?.[Symbol.asyncDispose]();
  });

  const edition = (engine: EngineName, number: number) =>
    stage.skill(engine, `sturdy-${engine}`, stage.from(`RUN echo ${number} > /number`), {
      'SKILL.md': skillMd({ name: `sturdy-${engine}`, runtime: engine, description: `Edition ${number}.` }),
    });
  const both = (number: number) =>
    Object.fromEntries(ENGINES.map((engine) => [`sturdy-${engine}`, edition(engine, number)]));
  const isSettled = (number: number) => (object: K8sObject) =>
    isReady(object) && object.status.description === `Edition ${number}.` && !object.status.retired;

  /** What is there of a skill outside the cluster is exactly what its status says. */
  async function expectOneOfEach(engine: EngineName, { status }: K8sObject): Promise<void> {
    const skill = `crash.p.sturdy-${engine}`;
    const { templateID, image } = status.served;
    expect(stage.templates(engine, `sturdy-${engine}`)).toEqual([templateID]);
    expect(await stage.hasImage(image)).toBe(true);
    expect(await stage.images(skill, engine)).toEqual([image.split('@')[1]]);
    expect(await stage.records(skill, engine)).toHaveLength(1);
    const inputs = (await stage.jobs(skill)).map(
      ({ metadata }) => metadata.annotations?.['skills.tfrobot.io/input-hash'],
    );
    expect(new Set(inputs).size).toBe(inputs.length);
  }

  test('after any side effect ends with one image and one template of every version', {
    timeout: 20 * 60_000,
  }, async () => {
    const spec = { skillTemplate: { versionHistoryLimit: 0 } };
    const { push, source } = await stage.market('crash', both(0), spec);
    for (const engine of ENGINES) await stage.until(`crash.p.sturdy-${engine}`, 'Ready', isSettled(0));
    for (let count = 1; count <= LAST; count += STEP) {
      const dead = Promise.withResolvers<void>();
      effects.after(count, () => dead.resolve(stage.operator.kill()));
      await push(both(count)).catch(() => undefined);
      const settled = eventually(
        async () => {
          const skills = await Promise.all(
            ENGINES.map((engine) => stage.bare.get(stage.operator.skill(`crash.p.sturdy-${engine}`))),
          );
          return skills.every((skill) => skill && isSettled(count)(skill));
        },
        { timeoutMs: LONG_MS, what: `edition ${count}`, intervalMs: 200 },
      );
      await Promise.race([dead.promise, settled.catch(() => undefined)]);
      effects.rest();
      if (!stage.operator.isRunning) await stage.operator.start();
      await settled;
      for (const engine of ENGINES) {
        const skill = await stage.until(`crash.p.sturdy-${engine}`, `edition ${count}`, isSettled(count));
        expect(condition(skill, 'Stalled'), `edition ${count}`).toBeUndefined();
        await expectOneOfEach(engine, skill);
      }
    }
    await stage.k8s.delete(source);
    for (const engine of ENGINES) {
      await stage.k8s.waitGone(stage.operator.skill(`crash.p.sturdy-${engine}`));
      expect(await stage.images(`crash.p.sturdy-${engine}`, engine)).toEqual([]);
    }
    expect(await stage.ledger()).toEqual([]);
  });
});
