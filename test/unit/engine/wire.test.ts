import { describe, expect, it } from 'vitest';
import * as cube from '../../../src/engine/cubesandbox.wire.ts';
import * as e2b from '../../../src/engine/e2b.wire.ts';

const image = `r.example.com/skills/pdf@sha256:${'a'.repeat(64)}`;
const name = 'pdf-0123456789ab';
const other = 'pdf-ba9876543210';
const ref = { templateId: 'tpl-own', buildId: 'job', name, image };

type RowChange = Partial<cube.CubeTemplate>;
const row = (templateID: string, change: RowChange = {}): cube.CubeTemplate => ({
  templateID,
  status: 'RUNNING',
  lastError: '',
  imageInfo: image,
  jobID: `job-of-${templateID}`,
  createdAt: '2026-01-01T00:00:00Z',
  aliases: [],
  ...change,
});

describe('planAllocation', () => {
  const held = new Set(['tpl-held']);
  const previous = { ...ref, templateId: 'tpl-previous' };
  const ready: RowChange = { status: 'READY', aliases: [name] };

  it.each<[string, cube.CubeTemplate[], string | undefined, string[]]>([
    ['nothing from an empty list', [], undefined, []],
    ['a build of its image', [row('tpl-1')], 'tpl-1', []],
    ['a finished one of its name', [row('tpl-1', ready)], 'tpl-1', []],
    ['the finished before the running', [row('tpl-1'), row('tpl-2', ready)], 'tpl-2', []],
    [
      'the oldest of two builds',
      [row('tpl-1', { createdAt: '2026-01-02' }), row('tpl-2', { createdAt: '2026-01-01' })],
      'tpl-2',
      [],
    ],
    ['the smaller id of two at once', [row('tpl-2'), row('tpl-1')], 'tpl-1', []],
    ['a build in a state it does not know', [row('tpl-1', { status: 'HIBERNATING' })], 'tpl-1', []],
    [
      'no finished one without a name, which may have other settings',
      [row('tpl-1', { status: 'READY' })],
      undefined,
      [],
    ],
    ['no other image', [row('tpl-1', { imageInfo: 'r/x@sha256:b' })], undefined, []],
    ['no other name', [row('tpl-1', { aliases: [other] })], undefined, []],
    ['no own name on another image', [row('tpl-1', { ...ready, imageInfo: 'r/x@sha256:b' })], undefined, []],
    ['no snapshot', [row('snap-1')], undefined, []],
    ['nothing that goes', [row('tpl-1', { status: 'DELETING' })], undefined, []],
    ['nothing held', [row('tpl-held')], undefined, []],
    ['nothing failed, and removes it', [row('tpl-1', { status: 'FAILED' })], undefined, ['tpl-1']],
    ['a build, and removes the failed', [row('tpl-1', { status: 'FAILED' }), row('tpl-2')], 'tpl-2', ['tpl-1']],
    ['nothing, and leaves a failed one that is held', [row('tpl-held', { status: 'FAILED' })], undefined, []],
    [
      'nothing, and leaves a failed one of another image',
      [row('tpl-1', { status: 'FAILED', imageInfo: 'x' })],
      undefined,
      [],
    ],
    ['never the previous one, which goes', [row('tpl-previous')], undefined, ['tpl-previous']],
    [
      'and leaves a previous one that is not its own',
      [row('tpl-previous', { imageInfo: 'x', aliases: [other] })],
      undefined,
      [],
    ],
  ])('adopts %s', (_name, rows, adopt, remove) => {
    const plan = cube.planAllocation(rows, ref, { held, previous });
    expect({ adopt: plan.adopt?.templateID, remove: plan.remove.map((r) => r.templateID) }).toEqual({ adopt, remove });
  });

  it('knows its image behind http://', () => {
    const rows = [row('tpl-1', { imageInfo: `http://${image}` })];
    expect(cube.planAllocation(rows, ref, { held }).adopt?.templateID).toBe('tpl-1');
  });
});

describe('duplicatesOf', () => {
  it.each<[string, cube.CubeTemplate, boolean]>([
    ['a nameless one of its image', row('tpl-1', { status: 'READY' }), true],
    ['a running one of its image', row('tpl-1'), true],
    ['one of its name', row('tpl-1', { status: 'READY', aliases: [name] }), true],
    ['not itself', row('tpl-own'), false],
    ['not one of other settings', row('tpl-1', { aliases: [other] }), false],
    ['not one of another image', row('tpl-1', { imageInfo: 'x' }), false],
    ['not one that another slot holds', row('tpl-held'), false],
    ['not a snapshot', row('snap-1'), false],
    ['not one that goes already', row('tpl-1', { status: 'DELETING' }), false],
  ])('counts %s', (_name, candidate, expected) => {
    expect(cube.duplicatesOf([candidate], ref, new Set(['tpl-held']))).toHaveLength(expected ? 1 : 0);
  });
});

describe('the state of a CubeSandbox template', () => {
  it.each<[RowChange, string]>([
    [{ status: 'READY' }, 'Ready'],
    [{ status: 'READY', aliases: [name] }, 'Ready'],
    [{ status: 'READY', aliases: [other] }, 'Absent'],
    [{ status: 'PARTIALLY_READY' }, 'Degraded'],
    [{ status: 'FAILED' }, 'Failed'],
    [{ status: 'DELETING' }, 'Absent'],
    [{ status: 'PENDING' }, 'Building'],
    [{ status: 'BUILT' }, 'Building'],
    [{ status: '' }, 'Building'],
    [{ status: 'ready' }, 'Ready'],
  ])('%j is %s', (change, phase) => {
    expect(cube.stateOf(row('tpl-own', change), ref).phase).toBe(phase);
  });

  it('takes the cause of a failure from the template, else from the job', () => {
    const build = { status: 'error', progress: 100, message: 'from the job' };
    const message = (lastError: string) =>
      JSON.stringify(cube.stateOf(row('tpl-own', { status: 'FAILED', lastError }), ref, build));
    expect(message('from the template')).toContain('could not make the template: from the template.');
    expect(message('')).toContain('could not make the template: from the job.');
  });
});

describe('createBody', () => {
  const settings = { withCubeCA: true, plainHttpRegistry: false };
  it.each([
    [undefined, '2G'],
    [100, '2G'],
    [2048, '2G'],
    [2049, '3G'],
  ])('a writable layer of %s MiB is %s', (writableLayerMiB, expected) => {
    const spec = { name, image, resources: { cpuMillis: 1000, memoryMiB: 512, writableLayerMiB } };
    expect(cube.createBody(spec, settings)).toMatchObject({ writableLayerSize: expected, with_cube_ca: true, image });
  });
});

describe('e2bResources', () => {
  it.each([
    [500, 512, 1, 512],
    [1000, 127, 1, 128],
    [1001, 513, 2, 514],
    [2500, 1024, 4, 1024],
    [4000, 100.5, 4, 128],
  ])('%s m and %s MiB are %s CPUs and %s MB', (cpuMillis, memoryMiB, cpuCount, memoryMB) => {
    expect(e2b.e2bResources({ cpuMillis, memoryMiB })).toEqual({ cpuCount, memoryMB });
  });
});

describe('adoptableBuild', () => {
  const id = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
  const detail = (...builds: [number, string, string?][]) =>
    e2b.detailSchema.parse({
      templateID: 'x'.repeat(20),
      builds: builds.map(([n, status, createdAt]) => ({ buildID: id(n), status, createdAt })),
    });

  it.each([
    ['the newest', detail([1, 'ready', '2026-01-01'], [2, 'waiting', '2026-01-02']), undefined, id(2)],
    ['one in a state it does not know', detail([1, 'uploaded']), undefined, id(1)],
    [
      'none when the newest failed',
      detail([1, 'ready', '2026-01-01'], [2, 'error', '2026-01-02']),
      undefined,
      undefined,
    ],
    ['none when the newest is the one that failed us', detail([1, 'building']), id(1), undefined],
    ['none without builds', detail(), undefined, undefined],
    ['none when the list is null', e2b.detailSchema.parse({ templateID: 'x', builds: null }), undefined, undefined],
  ])('is %s', (_name, given, previous, expected) => {
    expect(e2b.adoptableBuild(given, previous)).toBe(expected);
  });
});

describe('the state of an E2B build', () => {
  const state = (body: object) => e2b.stateOf(e2b.statusSchema.parse(body));
  it.each([
    [{ status: 'waiting' }, 'Allocated'],
    [{ status: 'building' }, 'Building'],
    [{ status: 'snapshotting', logEntries: null }, 'Building'],
    [{ status: 'ready' }, 'Ready'],
    [{ status: 'error' }, 'Failed'],
    [
      { status: 'error', reason: { message: 'The build was canceled because it was superseded by a newer one.' } },
      'Absent',
    ],
  ])('%j is %s', (body, phase) => {
    expect(state(body).phase).toBe(phase);
  });

  it('shows the last log line of a running build', () => {
    expect(
      state({
        status: 'building',
        logEntries: [
          { message: 'b', timestamp: '2' },
          { message: 'a', timestamp: '1' },
        ],
      }),
    ).toEqual({
      phase: 'Building',
      message: 'b',
    });
  });
});
