import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { dockerConfig } from '../../integration/build/registries.ts';
import { type ByoStage, LONG_MS, openByoStage } from '../../support/byo/stage.ts';
import { eventually } from '../../support/eventually.ts';
import { condition, type K8sObject } from '../../support/k8s.ts';
import { isReady, requestPass } from '../../support/market.ts';

const { node, ...info } = inject('cluster');

describe.skipIf(!node)('a build or a registration that fails', () => {
  if (!node) return;
  let stage: ByoStage;
  beforeAll(async () => {
    stage = await openByoStage(info, node);
    // It fails, waits half a minute and fails again: meanwhile there is other work.
    await stage.market('memory', { greedy: stage.skill('e2b', 'greedy', stage.from('RUN tail /dev/zero')) });
  });
  afterAll(() => stage?.[Symbol.asyncDispose]());
  afterEach(async () => {
    for (const gate of Object.values(stage.gates)) {
      gate.down = false;
      gate.busy = false;
    }
    await stage.operator.check();
  });

  const numbered = (number: number) => stage.from(`RUN echo ${number} > /number`);
  /** A Secret with a registry credential: its data as it is, and with a password that is wrong. */
  async function credentials(name: string, namespace: string) {
    const ref = { apiVersion: 'v1', kind: 'Secret', name, namespace };
    const good = (await stage.k8s.get(ref))?.data as Record<string, string>;
    const text = dockerConfig(stage.gates.registry.address, 'pusher', 'wrong');
    return { ref, good, bad: { '.dockerconfigjson': Buffer.from(text).toString('base64') } };
  }

  const isNotReady = (reason: string) => (object: K8sObject) => {
    const ready = condition(object, 'Ready');
    return ready?.status === 'False' && ready.reason === reason;
  };

  test('says what the RUN said, stays as it is, and the old version stays served', async () => {
    const { push } = await stage.market('run', { breaks: stage.skill('e2b', 'breaks', numbered(1)) });
    const skill = 'run.p.breaks';
    const { served } = (await stage.until(skill, 'Ready', isReady)).status;
    await push({
      breaks: stage.skill('e2b', 'breaks', stage.from('MAINTAINER x', 'RUN echo this is the reason; exit 3')),
    });
    const failed = await stage.until(skill, 'Failed', isNotReady('BuildCommandFailed'));
    expect(failed.status.candidate).toMatchObject({ phase: 'Failed', attempt: 1 });
    expect(failed.status.candidate.logTail).toContain('this is the reason');
    expect(failed.status.warnings).toContainEqual(
      expect.objectContaining({ code: 'DockerfileSyntaxIgnored', path: '.e2b.dockerfile' }),
    );
    expect(Buffer.byteLength(failed.status.candidate.logTail)).toBeLessThanOrEqual(2048);
    expect(condition(failed, 'Stalled')).toMatchObject({ status: 'True', reason: 'BuildCommandFailed' });
    expect(condition(failed, 'Serving')).toMatchObject({ status: 'True' });
    expect(failed.status).toMatchObject({ served, templateIDs: { e2b: served.templateID } });
    const jobs = (await stage.jobs(skill)).length;
    await requestPass(stage.k8s, stage.operator.skill(skill));
    expect((await stage.jobs(skill)).length).toBe(jobs);
    await push({ breaks: stage.skill('e2b', 'breaks', numbered(2)) });
    await stage.until(skill, 'Ready with the repair', isReady);
  });

  test('says that there is no such base image', async () => {
    const missing = `FROM ${node.baseRegistry.address}/none:1\nRUN true\n`;
    await stage.market('base', { baseless: stage.skill('cubesandbox', 'baseless', missing) });
    const failed = await stage.until('base.p.baseless', 'Failed', isNotReady('BaseImageRefused'));
    expect(condition(failed, 'Ready')?.message).toContain('FROM');
    expect(failed.status.served).toBeUndefined();
    expect(condition(failed, 'Serving')).toMatchObject({ status: 'False', reason: 'NothingServed' });
  });

  test('finds no credential, wherever a RUN looks for one', async () => {
    // What is planted has to be found, or the search itself is blind.
    const look = [
      'ENV PLANTED_TOKEN=1',
      'RUN echo \'{"auths":{"planted":1}}\' > /planted',
      `RUN echo environment: $(env | grep -iE 'secret|token|password|key=|amz' | tr '\\n' ' ') && \\
  echo processes: $(cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -iE 'secret|token|password|key=' | sort -u | tr '\\n' ' ') && \\
  echo mounts: $(grep -E 'serviceaccount|/run/skill-build|credential|secret' /proc/self/mounts | wc -l) && \\
  echo files: $(find / \\( -path /proc -o -path /sys \\) -prune -o -type f -exec grep -lE '"auths"|X-Amz-Sig[n]ature' {} + 2>/dev/null | sort | tr '\\n' ' ') && \\
  exit 7`,
    ];
    await stage.market('spy', { spy: stage.skill('e2b', 'spy', stage.from(...look)) });
    const failed = await stage.until('spy.p.spy', 'Failed', isNotReady('BuildCommandFailed'));
    const said = new Map<string, string>(
      failed.status.candidate.logTail.split('\n').map((line: string) => line.split(': ', 2)),
    );
    expect(said.get('environment')).toBe('PLANTED_TOKEN=1');
    expect(said.get('processes')).toBe('PLANTED_TOKEN=1');
    expect(said.get('mounts')).toBe('0');
    // The builder's program, its copies of the Dockerfile and the layer that it makes hold the words that are looked for.
    const files = said.get('files')?.split(' ') ?? [];
    const ofBuilder = /^\/kaniko\/(\d+|executor|Dockerfile|skill\/dockerfile\/Dockerfile)$/;
    expect(files.filter((file) => !ofBuilder.test(file))).toEqual(['/planted']);
  });

  test('holds up only the skills of the engine that is down, until it is back', async () => {
    stage.gates.e2b.down = true;
    await stage.market('down', {
      waits: stage.skill('e2b', 'waits', numbered(1)),
      goes: stage.skill('cubesandbox', 'goes', numbered(1)),
    });
    await stage.until('down.p.goes', 'Ready', isReady);
    const waiting = await stage.until('down.p.waits', 'waiting for E2B', isNotReady('EngineUnavailable'));
    expect(condition(waiting, 'Ready')?.message).toMatch(/^engine unavailable/i);
    expect(condition(waiting, 'Built')).toMatchObject({ status: 'True' });
    expect(condition(waiting, 'Registered')).toMatchObject({ status: 'False', reason: 'EngineUnavailable' });
    expect(stage.templates('cubesandbox', 'waits')).toEqual([]);
    stage.gates.e2b.down = false;
    const ready = await stage.until('down.p.waits', 'Ready', isReady);
    expect((await stage.jobs('down.p.waits')).length).toBe(1);
    expect(ready.status.templateIDs).toEqual({ e2b: stage.templates('e2b', 'waits')[0] });
  });

  test('waits for a registry that is down, and says so', async () => {
    // The check before a build counts for a while: a fresh operator has none.
    await stage.operator.stop();
    stage.gates.registry.down = true;
    await stage.operator.start();
    await stage.market('cut', { early: stage.skill('e2b', 'early', numbered(1)) });
    const waiting = await stage.until('cut.p.early', 'waiting for the registry', isNotReady('RegistryUnavailable'));
    expect(waiting.status.candidate.phase).toBe('Queued');
    expect(await stage.jobs('cut.p.early')).toEqual([]);
    stage.gates.registry.down = false;
    await requestPass(stage.k8s, stage.operator.skill('cut.p.early'));
    await stage.until('cut.p.early', 'Ready', isReady);
  });

  test('goes on when the registry is busy for a while, without a second build', async () => {
    await stage.market('busy', { patient: stage.skill('e2b', 'patient', stage.from('RUN sleep 3')) });
    const skill = 'busy.p.patient';
    await stage.until(skill, 'Building', ({ status }) => status?.candidate?.phase === 'Building');
    stage.gates.registry.busy = true;
    const { registry } = stage.gates;
    await eventually(() => registry.refused > 0, { timeoutMs: LONG_MS, what: 'a push that is told to come later' });
    stage.gates.registry.busy = false;
    await stage.until(skill, 'Ready', isReady);
    expect((await stage.jobs(skill)).length).toBe(1);
  });

  test('says that the push Secret is wrong, and builds again with the right one', async () => {
    const { good, bad, ref } = await credentials('registry-push', stage.builds);
    await stage.k8s.patch(ref, { data: bad });
    try {
      await stage.market('push', { blocked: stage.skill('e2b', 'blocked', numbered(1)) });
      const waiting = await stage.until('push.p.blocked', 'refused', isNotReady('RegistryDenied'));
      expect(condition(waiting, 'Ready')?.message).toContain('push Secret');
      expect(waiting.status.candidate).toMatchObject({ phase: 'Building', attempt: 1 });
      expect(waiting.status.candidate.retryAt).toBeDefined();
    } finally {
      await stage.k8s.patch(ref, { data: good });
    }
  });

  test('waits for a credential that the registry refuses, and uses the new one at once', async () => {
    const { good, bad, ref } = await credentials('registry', stage.operator.account.namespace);
    await stage.k8s.patch(ref, { data: bad });
    try {
      await stage.market('unauthorized', { denied: stage.skill('e2b', 'denied', numbered(1)) });
      const waiting = await stage.until('unauthorized.p.denied', 'refused', isNotReady('RegistryAuthFailed'));
      expect(waiting.status.served).toBeUndefined();
      expect(stage.templates('e2b', 'denied')).toEqual([]);
    } finally {
      await stage.k8s.patch(ref, { data: good });
    }
    await requestPass(stage.k8s, stage.operator.skill('unauthorized.p.denied'));
    await stage.until('unauthorized.p.denied', 'Ready', isReady);
    expect((await stage.jobs('unauthorized.p.denied')).length).toBe(1);
  });

  test('says that the quota of the build namespace is used up, and goes on when it is raised', async () => {
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'none', namespace: stage.builds },
      spec: { hard: { pods: '0' } },
    };
    const ref = { apiVersion: 'v1', kind: 'ResourceQuota', name: 'none', namespace: stage.builds };
    await stage.k8s.apply(quota);
    await stage.k8s.waitFor(ref, ({ status }) => status?.hard !== undefined);
    try {
      await stage.market('quota', { crowded: stage.skill('e2b', 'crowded', numbered(1)) });
      const waiting = await stage.until('quota.p.crowded', 'refused by the quota', isNotReady('BuildPodForbidden'));
      expect(condition(waiting, 'Ready')?.message).toContain('quota');
      expect(waiting.status.candidate.phase).toBe('Building');
    } finally {
      await stage.k8s.delete(ref);
    }
    const ready = await stage.until('quota.p.crowded', 'Ready', isReady);
    expect(condition(ready, 'Built')).toMatchObject({ status: 'True', reason: 'Succeeded' });
  });

  test('says that the build needs too much memory, and tries it once more', async () => {
    const last = await stage.until('memory.p.greedy', 'Failed', ({ status }) => status.candidate.phase === 'Failed');
    expect(last.status.candidate).toMatchObject({ attempt: 2, reason: 'BuildOutOfMemory' });
    expect(condition(last, 'Stalled')).toMatchObject({ status: 'True' });
    expect((await stage.jobs('memory.p.greedy')).length).toBe(2);
  });
});
