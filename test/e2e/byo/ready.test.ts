import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { FINALIZER } from '../../../src/api/labels.ts';
import type { EngineName } from '../../support/byo/parts.ts';
import { type ByoStage, openByoStage } from '../../support/byo/stage.ts';
import type { K8sObject } from '../../support/k8s.ts';
import { isReady } from '../../support/market.ts';
import { readObject } from '../../support/s3.ts';

const { node, ...info } = inject('cluster');

describe.skipIf(!node)('a skill that brings its own image', () => {
  if (!node) return;
  let stage: ByoStage;
  beforeAll(async () => {
    stage = await openByoStage(info, node);
  });
  afterAll(() => stage?.[Symbol.asyncDispose]());
  afterEach(() => stage.operator.check());

  test.each<EngineName>(['e2b', 'cubesandbox'])('goes from a commit to a template id on %s', async (engine) => {
    const name = `hello-${engine}`;
    const skill = `${engine}.p.${name}`;
    const dockerfile = stage.from('COPY greeting.txt /greeting.txt', 'RUN cp /greeting.txt /copy.txt');
    const seen = new Set<string>();
    await stage.market(engine, { [name]: stage.skill(engine, name, dockerfile, { 'greeting.txt': 'hello\n' }) });
    const note = ({ status }: K8sObject) => {
      if (status?.candidate) seen.add(status.candidate.phase);
      return false;
    };
    const ready = await stage.until(skill, 'Ready', (object) => note(object) || isReady(object));
    expect([...seen]).toEqual(expect.arrayContaining(['Building', 'Registering']));
    const { served, templateIDs } = ready.status;
    expect(templateIDs).toEqual({ [engine]: served.templateID });
    expect(stage.templates(engine, name)).toEqual([served.templateID]);
    expect(served.image).toMatch(/^[\d.:]+\/skills\/[0-9a-f-]+\/[\w-]+\/[\w.-]+-[0-9a-f]{8}-\w+@sha256:[0-9a-f]{64}$/);
    expect(await stage.hasImage(served.image)).toBe(true);
    const [record = '', ...more] = await stage.records(skill, engine);
    expect(more).toEqual([]);
    const digest = served.image.split('@')[1];
    expect(JSON.parse(String(await readObject(info.s3, stage.operator.bucket, record)))).toMatchObject({ digest });
    expect(ready.metadata.finalizers).toEqual([FINALIZER]);
    const [job, ...jobs] = await stage.jobs(skill);
    expect(jobs).toEqual([]);
    expect(job?.metadata.ownerReferences).toBeUndefined();
  });
});
