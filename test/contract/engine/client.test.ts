import { describe, expect, it } from 'vitest';
import { advance } from '../../../src/engine/advance.ts';
import { CubeSandboxEngine, type CubeSandboxOptions } from '../../../src/engine/cubesandbox.ts';
import { E2BEngine } from '../../../src/engine/e2b.ts';
import type { TemplateRef } from '../../../src/engine/port.ts';
import { CubeStub } from './stubs/cubesandbox.ts';
import { E2BStub } from './stubs/e2b.ts';
import { type ClientRig, clientContract, specOf } from './suite.client.ts';

const never = new AbortController().signal;
const none = { held: new Set<string>() };

async function openE2B(): Promise<ClientRig & { stub: E2BStub }> {
  const stub = await new E2BStub().listen();
  const key = async () => ({ value: 'e2b_aaaaaaaaaaaaaaaa' });
  return {
    kind: 'e2b',
    server: stub,
    stub,
    listPath: '/v2/templates',
    engine: (options) => new E2BEngine({ url: stub.url, key, ...options }),
    templates: () => [...stub.templates.keys()],
    failNext: (message) => stub.outcomes.push({ status: 'error', message }),
    showWhileBuilding: (status) => {
      stub.runningStatus = status;
    },
    hang: () => {
      stub.pollsToFinish = Number.POSITIVE_INFINITY;
    },
    lose: (id) => stub.templates.delete(id),
    use: (id) => stub.use(id, 'running'),
    [Symbol.asyncDispose]: () => stub[Symbol.asyncDispose](),
  };
}

async function openCube(): Promise<
  ClientRig & { stub: CubeStub; cube(options?: Partial<CubeSandboxOptions>): CubeSandboxEngine }
> {
  const stub = await new CubeStub().listen();
  return {
    kind: 'cubesandbox',
    server: stub,
    stub,
    listPath: '/templates',
    engine: (options) => new CubeSandboxEngine({ url: stub.url, ...options }),
    cube: (options) => new CubeSandboxEngine({ url: stub.url, ...options }),
    templates: () => [...stub.templates.keys()],
    failNext: (message) => stub.failures.push(message),
    showWhileBuilding: (status) => {
      stub.runningStatus = status;
    },
    hang: () => {
      stub.stuck = true;
    },
    lose: (id) => stub.templates.delete(id),
    use: (id) => stub.use(id),
    [Symbol.asyncDispose]: () => stub[Symbol.asyncDispose](),
  };
}

clientContract('e2b', openE2B);
clientContract('cubesandbox', openCube);

const bodyOf = (rig: ClientRig, call: RegExp) => {
  const found = rig.server.seen.find((request) => call.test(`${request.method} ${request.path}`));
  return JSON.parse(found?.body ?? 'null');
};

describe('E2B alone', () => {
  it('gets whole CPUs, even memory, the pull credential and no tags', async () => {
    await using rig = await openE2B();
    const spec = { ...specOf('e2b'), startCommand: 'serve', readyCommand: 'ready' };
    const sized = { ...spec, resources: { cpuMillis: 2100, memoryMiB: 511 } };
    const ref = await rig.engine().allocate(sized, none, never);
    expect(await rig.engine().start(sized, ref, never)).toBe('started');
    expect(bodyOf(rig, /^POST \/v3/)).toEqual({ name: spec.name, cpuCount: 4, memoryMB: 512 });
    expect(bodyOf(rig, /^POST \/v2/)).toEqual({
      fromImage: spec.image,
      fromImageRegistry: { type: 'registry', username: 'puller', password: spec.registryAuth?.password },
      force: false,
      steps: [],
      startCmd: 'serve',
      readyCmd: 'ready',
    });
  });

  it('says that a build runs already, and that one is gone', async () => {
    await using rig = await openE2B();
    const spec = specOf('e2b');
    const ref = await rig.engine().allocate(spec, none, never);
    await rig.engine().start(spec, ref, never);
    expect(await rig.engine().start(spec, ref, never)).toBe('running');
    rig.lose(ref.templateId);
    expect(await rig.engine().start(spec, ref, never)).toBe('absent');
  });

  it('is allocated anew, under the same id, when a build was superseded', async () => {
    await using rig = await openE2B();
    const spec = specOf('e2b');
    const first = await rig.engine().allocate(spec, none, never);
    const second = await rig.engine().allocate(spec, { ...none, previous: first }, never);
    expect(second.templateId).toBe(first.templateId);
    expect(await rig.engine().poll(first, never)).toMatchObject({ phase: 'Absent' });
    expect(await rig.engine().allocate(spec, { ...none, previous: first }, never)).toEqual(second);
  });

  it('builds anew under the same id when a stuck build is retried', async () => {
    await using rig = await openE2B();
    const spec = specOf('e2b');
    rig.hang();
    const ref = await rig.engine().allocate(spec, none, never);
    await rig.engine().start(spec, ref, never);
    const late = rig.engine().buildDeadlineMs + 1;
    const retried = await advance(rig.engine(), spec, { ref, startedAt: 0, retryFailed: true, ...none }, late, never);
    if (retried.step !== 'persist') throw new Error(`it is ${retried.step}`);
    expect(retried.ref.templateId).toBe(ref.templateId);
    expect(retried.ref.buildId).not.toBe(ref.buildId);
  });

  it('shows the end of the log of a failed build', async () => {
    await using rig = await openE2B();
    rig.failNext('exec format error');
    const spec = specOf('e2b');
    const ref = await rig.engine().allocate(spec, none, never);
    await rig.engine().start(spec, ref, never);
    let state = await rig.engine().poll(ref, never);
    for (let i = 0; i < 5 && state.phase !== 'Failed'; i++) state = await rig.engine().poll(ref, never);
    expect(state).toMatchObject({
      failure: { policy: 'Stalled', logTail: 'step 1\nstep 2\nstep 3\nexec format error' },
    });
  });

  it('is healthy only with a key that counts', async () => {
    await using rig = await openE2B();
    expect(await rig.engine().health(never)).toEqual({ reachable: true, authenticated: true });
    const key = async () => ({ value: 'e2b_0000000000000000' });
    expect(await rig.engine({ key }).health(never)).toMatchObject({ reachable: true, authenticated: false });
    rig.stub.healthy = false;
    expect(await rig.engine().health(never)).toMatchObject({ reachable: false });
  });

  it('pages through its list', async () => {
    await using rig = await openE2B();
    rig.stub.maxBuilds = 500;
    for (let i = 0; i < 120; i++) await rig.engine().allocate(specOf('e2b'), none, never);
    rig.stub.takeCalls();
    const ids = (await rig.engine().list(never)).map((row) => row.templateId);
    expect(ids.toSorted()).toEqual(rig.templates().toSorted());
    expect(rig.stub.takeCalls()).toHaveLength(2);
  });
});

describe('CubeSandbox alone', () => {
  it('gets millicores, envd’s port, the pull credential and no ENV', async () => {
    await using rig = await openCube();
    const spec = specOf('cubesandbox');
    await rig.cube({ plainHttpRegistry: true, withCubeCA: false }).allocate(spec, none, never);
    expect(bodyOf(rig, /^POST/)).toEqual({
      image: `http://${spec.image}`,
      name: spec.name,
      writableLayerSize: '2G',
      exposedPorts: [49_983],
      probePort: 49_983,
      probePath: '/health',
      cpu: 1000,
      memory: 1024,
      instanceType: 'cubebox',
      networkType: 'tap',
      allowInternetAccess: true,
      registryUsername: 'puller',
      registryPassword: spec.registryAuth?.password,
      with_cube_ca: false,
    });
    expect((await rig.cube({ plainHttpRegistry: true }).allocate(spec, none, never)).templateId).toBe(
      rig.templates()[0],
    );
  });

  it('never adopts a snapshot or what another slot holds', async () => {
    await using rig = await openCube();
    const spec = specOf('cubesandbox');
    rig.stub.snapshots.push({ templateID: 'snap-1', imageInfo: spec.image });
    const first = await rig.engine().allocate(spec, none, never);
    const second = await rig.engine().allocate(spec, { held: new Set([first.templateId]) }, never);
    expect(second.templateId).not.toBe(first.templateId);
    expect(await rig.engine().list(never)).toHaveLength(2);
  });

  it.each([
    ['adopts it', 'made'],
    ['says so and makes none', 'none'],
  ] as const)('without a job in the answer %s', async (_name, jobless) => {
    await using rig = await openCube();
    rig.stub.jobless = jobless;
    const allocated = rig.engine().allocate(specOf('cubesandbox'), none, never);
    if (jobless === 'made') expect((await allocated).templateId).toBe(rig.templates()[0]);
    else await expect(allocated).rejects.toMatchObject({ kind: 'Unknown', policy: 'Retry' });
  });

  it.each([
    ['legacy', 'InUse'],
    ['locator-missing', 'Unknown'],
  ] as const)('refuses a delete in its %s way as %s', async (mode, kind) => {
    await using rig = await openCube();
    const spec = specOf('cubesandbox');
    const ref = await rig.engine().allocate(spec, none, never);
    rig.stub.deleteMode = mode;
    await expect(rig.engine().delete(ref, never)).rejects.toMatchObject({ kind });
  });

  it.each([
    [true, 'deleted'],
    [false, 'engine unavailable'],
  ])('after a delete that never answers (done: %s) is %s', async (after, expected) => {
    await using rig = await openCube();
    const ref = await finished(rig);
    rig.stub.fail({ method: 'DELETE', path: /./, answer: 'hang', after });
    const outcome = rig.cube({ deleteTimeoutMs: 100 }).delete(ref, never);
    if (after) expect(await outcome).toBe(expected);
    else await expect(outcome).rejects.toThrow(expected);
  });

  it('tells its database apart from a bad request', async () => {
    await using rig = await openCube();
    rig.stub.databaseDown = true;
    const spec = specOf('cubesandbox');
    await expect(rig.engine().allocate(spec, none, never)).rejects.toMatchObject({ kind: 'Unknown', policy: 'Retry' });
    rig.stub.fail({ method: 'POST', path: /./, answer: { status: 400, json: { message: 'source_image_ref: bad' } } });
    await expect(rig.engine().allocate(spec, none, never)).rejects.toMatchObject({
      kind: 'Invalid',
      policy: 'Stalled',
    });
  });

  it('does not take a stuck build for a new attempt, and makes no second template beside it', async () => {
    await using rig = await openCube();
    const spec = specOf('cubesandbox');
    rig.hang();
    const ref = await rig.engine().allocate(spec, none, never);
    const late = rig.engine().buildDeadlineMs + 1;
    const retried = advance(rig.engine(), spec, { ref, startedAt: 0, retryFailed: true, ...none }, late, never);
    await expect(retried).rejects.toMatchObject({ kind: 'InUse' });
    expect(rig.templates()).toEqual([ref.templateId]);
  });

  it('counts a nameless template as ready only when its image is the Skill’s', async () => {
    await using rig = await openCube();
    const ref = await finished(rig);
    for (const template of rig.stub.templates.values()) template.alias = undefined;
    expect((await rig.engine().poll(ref, never)).phase).toBe('Ready');
    expect((await rig.engine().poll({ ...ref, image: specOf('cubesandbox').image }, never)).phase).toBe('Absent');
    expect(await rig.engine().delete(ref, never)).toBe('deleted');
  });

  it('is usable while some nodes lack the template', async () => {
    await using rig = await openCube();
    rig.stub.partial = true;
    expect((await rig.engine().poll(await finished(rig), never)).phase).toBe('Degraded');
  });

  it('shows progress and phase of a build, and goes on without them', async () => {
    await using rig = await openCube();
    const ref = await rig.engine().allocate(specOf('cubesandbox'), none, never);
    expect(await rig.engine().poll(ref, never)).toEqual({ phase: 'Building', progress: 25, message: 'BUILDING_EXT4' });
    expect(await rig.engine().poll({ ...ref, buildId: 'unknown' }, never)).toEqual({ phase: 'Building' });
  });

  it('is not reachable while CubeMaster is down, nor healthy with a wrong key', async () => {
    await using rig = await openCube();
    rig.stub.key = 'right';
    const wrong = async () => ({ value: 'wrong-key' });
    expect(await rig.engine({ key: wrong }).health(never)).toMatchObject({ reachable: true, authenticated: false });
    rig.stub.key = undefined;
    rig.stub.masterDown = true;
    expect(await rig.engine().health(never)).toMatchObject({ reachable: false });
  });
});

async function finished(rig: Awaited<ReturnType<typeof openCube>>): Promise<TemplateRef> {
  const ref = await rig.engine().allocate(specOf('cubesandbox'), none, never);
  for (let i = 0; i < 20; i++) rig.stub.tick();
  return ref;
}
