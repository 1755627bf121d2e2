import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { type ByoStage, LONG_MS, openByoStage } from '../../support/byo/stage.ts';
import { eventually } from '../../support/eventually.ts';
import { condition } from '../../support/k8s.ts';
import { isReady } from '../../support/market.ts';

const { node, ...info } = inject('cluster');

describe.skipIf(!node)('builds at once', () => {
  if (!node) return;
  let stage: ByoStage;
  beforeAll(async () => {
    stage = await openByoStage(info, node, { build: { limits: { total: 2, perNamespace: 2 } } });
  });
  afterAll(() => stage?.[Symbol.asyncDispose]());
  afterEach(() => stage.operator.check());

  test('are never more than the limit, and all skills get their turn', async () => {
    const names = [1, 2, 3, 4, 5, 6].map((number) => `turn-${number}`);
    const skill = (name: string, index: number) =>
      stage.skill(index % 2 ? 'cubesandbox' : 'e2b', name, stage.from(`RUN echo ${name} > /name`));
    await stage.market('turns', Object.fromEntries(names.map((name, index) => [name, skill(name, index)])));
    let most = 0;
    let queued = false;
    await eventually(
      async () => {
        most = Math.max(most, await stage.unfinishedJobs());
        const skills = await Promise.all(names.map((name) => stage.k8s.get(stage.operator.skill(`turns.p.${name}`))));
        queued ||= skills.some((one) => one && condition(one, 'Ready')?.reason === 'BuildQueued');
        return skills.every((one) => one && isReady(one));
      },
      { timeoutMs: 3 * LONG_MS, what: 'six Skills to be Ready', intervalMs: 200 },
    );
    expect(most).toBe(2);
    expect(queued).toBe(true);
    expect(await stage.jobs()).toHaveLength(6);
  });
});

describe.skipIf(!node)('a build that finds no node, or no end', () => {
  if (!node) return;
  let stage: ByoStage;
  const label = 'skills.test/pool';
  beforeAll(async () => {
    stage = await openByoStage(info, node, {
      build: {
        placement: { nodeSelector: { [label]: 'builds' } },
        deadlines: { pendingSeconds: 30, activeSeconds: 5 },
      },
    });
  });
  const setPool = async (pool: string | null): Promise<unknown> => {
    const ref = { apiVersion: 'v1', kind: 'Node', name: node.name };
    return await stage.k8s.patch(ref, { metadata: { labels: { [label]: pool } } });
  };
  afterAll(async () => {
    await setPool(null);
    await stage?.[Symbol.asyncDispose]();
  });

  test('says that no node has room, and starts when one has', async () => {
    await stage.market('room', { homeless: stage.skill('e2b', 'homeless', stage.from('RUN true')) });
    const waiting = await stage.until(
      'room.p.homeless',
      'unschedulable',
      (object) => condition(object, 'Ready')?.reason === 'BuildUnschedulable',
    );
    expect(waiting.status.candidate.phase).toBe('Building');
    await setPool('builds');
    await stage.until('room.p.homeless', 'Ready', isReady);
  });

  test('is ended at its deadline and tried once more', async () => {
    await setPool('builds');
    await stage.market('slow', { endless: stage.skill('e2b', 'endless', stage.from('RUN sleep 600')) });
    const late = await stage.until(
      'slow.p.endless',
      'timed out',
      (object) => condition(object, 'Ready')?.reason === 'BuildTimeout',
    );
    expect(late.status.candidate.logTail).toContain('sleep 600');
    expect(late.status.candidate).toMatchObject({ attempt: 1, phase: 'Building' });
    expect(late.status.candidate.retryAt).toBeDefined();
  });
});
