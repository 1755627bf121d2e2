import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type ByoStage, LONG_MS, openByoStage } from '../../support/byo/stage.ts';
import { eventually } from '../../support/eventually.ts';
import { isReady } from '../../support/market.ts';

const { node, ...info } = inject('cluster');

describe.skipIf(!node)('a namespace that is deleted', () => {
  if (!node) return;
  let stage: ByoStage;
  beforeAll(async () => {
    stage = await openByoStage(info, node);
  });
  afterAll(() => stage?.[Symbol.asyncDispose]());

  test('goes although an engine is down; what is left stands in the ledger and is removed later', async () => {
    const dockerfile = stage.from('RUN echo 1 > /number');
    await stage.market('all', {
      stays: stage.skill('e2b', 'stays', dockerfile),
      goes: stage.skill('cubesandbox', 'goes', dockerfile),
    });
    const { served: stays } = (await stage.until('all.p.stays', 'Ready', isReady)).status;
    const { served: goes } = (await stage.until('all.p.goes', 'Ready', isReady)).status;
    stage.gates.e2b.down = true;
    const ref = { apiVersion: 'v1', kind: 'Namespace', name: stage.operator.namespace };
    await stage.k8s.delete(ref);
    await stage.k8s.waitGone(ref, { timeoutMs: LONG_MS });
    expect(stage.templates('cubesandbox', 'goes')).toEqual([]);
    expect(await stage.hasImage(goes.image)).toBe(false);
    expect(stage.templates('e2b', 'stays')).toEqual([stays.templateID]);
    expect(await stage.ledger()).toMatchObject([
      { skill: 'all.p.stays', templateID: stays.templateID, image: stays.image, why: 'DeletionExpired' },
    ]);
    stage.gates.e2b.down = false;
    // A new process reads the ledger and works it off.
    await stage.operator.restart();
    await eventually(async () => (await stage.ledger()).length === 0, { timeoutMs: LONG_MS, what: 'an empty ledger' });
    expect(stage.templates('e2b', 'stays')).toEqual([]);
    expect(await stage.hasImage(stays.image)).toBe(false);
    await stage.operator.check();
  });
});
