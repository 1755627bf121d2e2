import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { ANNOTATIONS, FINALIZER } from '../../../src/api/labels.ts';
import type { EngineName } from '../../support/byo/parts.ts';
import { type ByoStage, LONG_MS, openByoStage } from '../../support/byo/stage.ts';
import { eventually } from '../../support/eventually.ts';
import { condition, type K8sObject } from '../../support/k8s.ts';
import { isReady, requestPass, skillMd } from '../../support/market.ts';
import { readObject } from '../../support/s3.ts';

const { node, ...info } = inject('cluster');

describe.skipIf(!node)('the versions of a skill that brings its own image', () => {
  if (!node) return;
  let stage: ByoStage;
  beforeAll(async () => {
    stage = await openByoStage(info, node);
  });
  afterAll(() => stage?.[Symbol.asyncDispose]());
  afterEach(() => stage.operator.check());

  const numbered = (number: number) => stage.from(`RUN echo ${number} > /number`);
  const described = (engine: EngineName, name: string, number: number) =>
    stage.skill(engine, name, numbered(number), {
      'SKILL.md': skillMd({ name, runtime: engine, description: `Edition ${number}.` }),
    });
  const isEdition = (number: number) => (object: K8sObject) =>
    isReady(object) && object.status.description === `Edition ${number}.`;
  const gone = async (skill: string, engine: EngineName, name: string, image: string) => {
    expect(stage.templates(engine, name)).toEqual([]);
    expect(await stage.records(skill, engine)).toEqual([]);
    expect(await stage.hasImage(image)).toBe(false);
  };

  test.concurrent.each<EngineName>(['e2b', 'cubesandbox'])('change, retire, come back and go on %s', async (engine) => {
    const name = `edition-${engine}`;
    const skill = `${engine}.p.${name}`;
    const { push, source } = await stage.market(engine, { [name]: described(engine, name, 1) });
    const first = (await stage.until(skill, 'the first edition', isEdition(1))).status.served;

    await push({ [name]: described(engine, name, 2) });
    const wrong: unknown[] = [];
    const second = (
      await stage.until(skill, 'the second edition', (object) => {
        // What is shown belongs together at every moment: the old version until the new one is served.
        const { served, templateIDs, description } = object.status;
        const old = served?.digest === first.digest;
        const id = old ? first.templateID : served?.templateID;
        const shown = old ? 'Edition 1.' : 'Edition 2.';
        if (!served || templateIDs?.[engine] !== id || description !== shown) wrong.push(object.status);
        return isEdition(2)(object);
      })
    ).status;
    expect(wrong).toEqual([]);
    expect(second.served.templateID).not.toBe(first.templateID);
    expect(second.served.image).not.toBe(first.image);
    expect(second.retired).toEqual([{ ...first, state: 'Kept' }]);
    expect(stage.templates(engine, name).sort()).toEqual([first.templateID, second.served.templateID].sort());

    await push({ [name]: described(engine, name, 3) });
    await stage.until(skill, 'the third edition', isEdition(3));
    const third = (await stage.until(skill, 'the end of the first', ({ status }) => status.retired?.length === 1))
      .status;
    expect(third.retired).toEqual([{ ...second.served, state: 'Kept' }]);
    expect(stage.templates(engine, name)).not.toContain(first.templateID);
    expect(await stage.hasImage(first.image)).toBe(false);
    expect(await stage.records(skill, engine)).toHaveLength(2);

    const jobs = (await stage.jobs(skill)).length;
    await push({ [name]: described(engine, name, 2) });
    const back = (await stage.until(skill, 'the second edition again', isEdition(2))).status;
    expect(back.served).toMatchObject({ templateID: second.served.templateID, image: second.served.image });
    expect(back.retired).toEqual([{ ...third.served, state: 'Kept' }]);
    expect((await stage.jobs(skill)).length).toBe(jobs);

    await stage.k8s.delete(source);
    await stage.k8s.waitGone(stage.operator.skill(skill));
    await gone(skill, engine, name, back.served.image);
    expect(await stage.hasImage(third.served.image)).toBe(false);
    expect(await stage.ledger()).toEqual([]);
  });

  test('move from one engine to the other and on to a platform template', async () => {
    const { push, source } = await stage.market('move', { mover: stage.skill('e2b', 'mover', numbered(1)) });
    const skill = 'move.p.mover';
    const first = (await stage.until(skill, 'Ready on E2B', isReady)).status.served;

    await push({ mover: stage.skill('cubesandbox', 'mover', numbered(1)) });
    const second = await stage.until(
      skill,
      'Ready on CubeSandbox',
      (object) => isReady(object) && object.status.runtime === 'cubesandbox',
    );
    expect(second.status.templateIDs).toEqual({ cubesandbox: second.status.served.templateID });
    expect(second.status.served.image).toMatch(/-cubesandbox@/);
    expect(second.status.retired).toEqual([{ ...first, state: 'Kept' }]);

    await push({ mover: { 'SKILL.md': skillMd({ name: 'mover', runtime: 'e2b::python' }) } });
    const third = await stage.until(
      skill,
      'Ready on the platform template, without the first version',
      (object) => isReady(object) && object.status.tier === 1 && object.status.retired.length === 1,
    );
    expect(third.status.templateIDs).toEqual({ e2b: 'e2b-python' });
    expect(third.status.retired).toEqual([{ ...second.status.served, state: 'Kept' }]);
    await gone(skill, 'e2b', 'mover', first.image);

    await stage.k8s.patch(source, { spec: { skillTemplate: { versionHistoryLimit: 0 } } });
    const last = await stage.until(skill, 'without history and finalizer', ({ status, metadata }) => {
      return status.retired === undefined && metadata.finalizers === undefined;
    });
    expect(last.status.templateIDs).toEqual({ e2b: 'e2b-python' });
    await gone(skill, 'cubesandbox', 'mover', second.status.served.image);
  });

  test('stay outside when their Skill goes with deletionPolicy Orphan', async () => {
    const spec = { skillTemplate: { deletionPolicy: 'Orphan' } };
    const { source } = await stage.market('orphan', { left: stage.skill('e2b', 'left', numbered(1)) }, spec);
    const skill = 'orphan.p.left';
    const { served } = (await stage.until(skill, 'Ready', isReady)).status;
    await stage.k8s.delete(source);
    await stage.k8s.waitGone(stage.operator.skill(skill));
    expect(stage.templates('e2b', 'left')).toEqual([served.templateID]);
    expect(await stage.hasImage(served.image)).toBe(true);
    const [record = ''] = await stage.records(skill, 'e2b');
    expect(JSON.parse(String(await readObject(info.s3, stage.operator.bucket, record)))).toMatchObject({ kept: true });
  });

  test('go when their directory vanishes, and a template in use goes once it is free', async () => {
    const market = { one: stage.skill('e2b', 'one', numbered(1)), two: { 'SKILL.md': skillMd({ name: 'two' }) } };
    const { repository, source } = await stage.market('vanish', market);
    const skill = 'vanish.p.one';
    const { served } = (await stage.until(skill, 'Ready', isReady)).status;
    stage.e2b.use(served.templateID, 'running');
    await repository.commit({}, { remove: ['plugins/p/skills/one'] });
    await requestPass(stage.k8s, source);
    const waiting = await stage.until(skill, 'waiting for its template', ({ metadata, status }) => {
      return metadata.deletionTimestamp !== undefined && status.retired?.[0]?.state === 'Deleting';
    });
    expect(condition(waiting, 'Ready')).toMatchObject({ status: 'Unknown', reason: 'Progressing' });
    expect(waiting.metadata.finalizers).toEqual([FINALIZER]);
    expect(stage.templates('e2b', 'one')).toEqual([served.templateID]);
    stage.e2b.use(served.templateID, undefined);
    await stage.k8s.waitGone(stage.operator.skill(skill));
    await gone(skill, 'e2b', 'one', served.image);
  });

  test('are built again by the annotation alone, and the Job of a finished one is not missed', async () => {
    await stage.market('again', { anew: stage.skill('e2b', 'anew', numbered(1)) });
    const skill = 'again.p.anew';
    const ref = stage.operator.skill(skill);
    const { served } = (await stage.until(skill, 'Ready', isReady)).status;
    for (const { metadata } of await stage.jobs(skill)) await stage.k8s.delete(stage.job(metadata.name));
    await requestPass(stage.k8s, ref);
    await stage.operator.restart();
    await requestPass(stage.k8s, ref);
    expect((await stage.jobs(skill)).filter(({ metadata }) => !metadata.deletionTimestamp)).toEqual([]);
    expect((await stage.k8s.get(ref))?.status.served).toEqual(served);

    await stage.k8s.annotate(ref, { [ANNOTATIONS.rebuild]: '1' });
    const anew = await stage.until(skill, 'Ready again, without the old version', (object) => {
      return (
        isReady(object) &&
        object.status.lastHandledRebuild === '1' &&
        !object.status.candidate &&
        !object.status.retired
      );
    });
    expect(anew.status.served).toMatchObject({ digest: served.digest });
    expect(stage.templates('e2b', 'anew')).toEqual([anew.status.served.templateID]);
    expect(await stage.hasImage(anew.status.served.image)).toBe(true);
  });

  test('wait while suspended, their Job is cancelled, and they go on afterwards', async () => {
    const slow = stage.from('RUN sleep 8', 'RUN echo done');
    await stage.market('pause', { sleeper: stage.skill('e2b', 'sleeper', slow) });
    const skill = 'pause.p.sleeper';
    const ref = stage.operator.skill(skill);
    const { status } = await stage.until(skill, 'Building', (object) => object.status?.candidate?.phase === 'Building');
    await stage.k8s.patch(ref, { spec: { suspend: true } });
    await stage.until(skill, 'Queued', (object) => object.status.candidate?.phase === 'Queued');
    await eventually(async () => (await stage.jobs(skill)).length === 0, {
      timeoutMs: LONG_MS,
      what: 'the end of the Job',
    });
    await stage.k8s.patch(ref, { spec: { suspend: null } });
    const ready = await stage.until(skill, 'Ready', isReady);
    expect((await stage.jobs(skill)).map(({ metadata }) => metadata.name)).not.toContain(status.candidate.jobName);
    expect(stage.templates('e2b', 'sleeper')).toEqual([ready.status.served.templateID]);
  });

  test('are given up while they are being built when newer content comes, or the Skill is deleted', async () => {
    const slow = stage.from('RUN sleep 600');
    const { push, source } = await stage.market('newer', { hasty: stage.skill('e2b', 'hasty', slow) });
    const skill = 'newer.p.hasty';
    const isBuilding = ({ status }: K8sObject) => status?.candidate?.phase === 'Building';
    const { status } = await stage.until(skill, 'Building', isBuilding);
    await push({ hasty: stage.skill('e2b', 'hasty', numbered(2)) });
    const ready = await stage.until(skill, 'Ready', isReady);
    expect((await stage.jobs(skill)).map(({ metadata }) => metadata.name)).not.toContain(status.candidate.jobName);
    await push({ hasty: stage.skill('e2b', 'hasty', slow) });
    await stage.until(skill, 'Building again', isBuilding);
    await stage.k8s.delete(source);
    await stage.k8s.waitGone(stage.operator.skill(skill));
    await eventually(async () => (await stage.jobs(skill)).length === 0, {
      timeoutMs: LONG_MS,
      what: 'the end of the Jobs',
    });
    await gone(skill, 'e2b', 'hasty', ready.status.served.image);
  });
});
