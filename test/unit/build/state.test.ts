import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { describe, expect, test } from 'vitest';
import type { BuildState, Observation } from '../../../src/build/state.ts';
import {
  at,
  built,
  DISRUPTED,
  DONE,
  event,
  exited,
  job,
  NOT_YET,
  observe,
  pod,
  pushed,
  RESULT,
  RUNS,
  waits,
} from './observations.ts';
import { hex } from './samples.ts';

describe('an attempt without a failure', () => {
  const deleted = job();
  test.each<[string, Partial<Observation>, Partial<BuildState>]>([
    ['has not started without a Job', { job: undefined }, { phase: 'NotStarted' }],
    ['is suspended before its Secret is there', { job: job([], { suspend: true }) }, { phase: 'Suspended' }],
    [
      'says nothing while its Job is being deleted',
      { job: { ...deleted, metadata: { ...deleted.metadata, deletionTimestamp: at(1) as never } } },
      { phase: 'Deleting' },
    ],
    [
      'runs fetch',
      { pods: [pod({ fetch: RUNS, build: NOT_YET, push: NOT_YET })] },
      { phase: 'Running', step: 'fetch' },
    ],
    [
      'runs build, although the pod says Pending while init containers run',
      { pods: [pod({ fetch: DONE, build: RUNS, push: NOT_YET })] },
      { phase: 'Running', step: 'build' },
    ],
    [
      'is about to run build when fetch has just ended',
      { pods: [pod({ fetch: DONE, build: NOT_YET, push: NOT_YET })] },
      { phase: 'Running', step: 'build' },
    ],
    [
      'still runs the step that has just failed, until the Job says so',
      { pods: [pod({ fetch: DONE, build: exited(1), push: NOT_YET })] },
      { phase: 'Running', step: 'build' },
    ],
    ['runs push', { pods: [pod({ fetch: DONE, build: DONE, push: RUNS })] }, { phase: 'Running', step: 'push' }],
    [
      'has succeeded with what push reports',
      { job: job([['Complete']]), pods: [pod({ fetch: DONE, build: DONE, push: exited(0, RESULT) })] },
      { phase: 'Succeeded', digest: `sha256:${hex('7')}`, size: 1234 },
    ],
    [
      'has succeeded before its pod is gone',
      { job: job([['SuccessCriteriaMet']]), pods: [pod({ fetch: DONE, build: DONE, push: exited(0, RESULT) })] },
      { phase: 'Succeeded' },
    ],
  ])('%s', (_name, change, expected) => {
    expect(observe(change)).toMatchObject(expected);
  });

  test('looks at the pod that replaced an evicted one', () => {
    const old = pod({ fetch: DONE, build: exited(137) }, { reason: 'Evicted', ...DISRUPTED }, 'old');
    const fresh = pod({ fetch: RUNS }, {}, 'fresh');
    const pods = [old, { ...fresh, metadata: { ...fresh.metadata, creationTimestamp: at(1) as never } }];
    expect(observe({ pods })).toEqual({ phase: 'Running', step: 'fetch' });
  });

  test('counts the pending time anew when a later image is slow to come', () => {
    const states = { fetch: DONE, build: waits('ImagePullBackOff', 'Back-off pulling image') };
    const state = observe({ job: job([], { startedAgo: 290 }), pods: [pod(states)] });
    expect(state).toMatchObject({ phase: 'Pending', reason: 'BuildImagePullFailed', remainingMs: 290_000 });
  });
});

describe('an attempt that waits', () => {
  const name = job().metadata?.name;
  const unschedulable: Pod['status'] = {
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes: too few cpu' }],
  };
  const CASES: [string, Partial<Observation>, string, string][] = [
    ['a Job without a pod', {}, 'BuildPodNotStarted', 'Setup'],
    [
      'a refused pod',
      { events: [event('FailedCreate', name, 'pods "x" is forbidden: exceeded quota: builds')] },
      'BuildPodForbidden',
      'Setup',
    ],
    ['no node', { pods: [pod({}, unschedulable)] }, 'BuildUnschedulable', 'Capacity'],
    [
      'an image that is not there',
      { pods: [pod({ fetch: waits('ErrImagePull', 'manifest unknown') })] },
      'BuildImagePullFailed',
      'Setup',
    ],
    [
      'a missing Secret',
      { pods: [pod({ fetch: waits('CreateContainerConfigError', 'secret "x" not found') })] },
      'BuildPodNotStarted',
      'Setup',
    ],
    [
      'a volume that cannot be mounted',
      {
        pods: [pod({ fetch: waits('ContainerCreating') })],
        events: [event('FailedMount', 'sb-1-x', 'MountVolume.SetUp failed: secret "registry-push" not found')],
      },
      'BuildPodNotStarted',
      'Setup',
    ],
  ];

  test.each(CASES)('is Pending with a reason: %s', (_name, change, reason) => {
    expect(observe(change)).toMatchObject({ phase: 'Pending', reason, remainingMs: 240_000 });
  });

  test.each(CASES)('has failed once the time for waiting is up: %s', (_name, change, reason, failure) => {
    const state = observe({ job: job([], { startedAgo: 301 }), ...change });
    expect(state).toMatchObject({ phase: 'Failed', class: failure, reason });
  });

  test('says what Kubernetes said', () => {
    const messages = CASES.map(([, change]) => observe(change)).map((state) => 'message' in state && state.message);
    expect(messages).toMatchInlineSnapshot(`
      [
        "the Job controller has not created the build pod yet; check that kube-controller-manager runs",
        "the build namespace does not let the pod be created: pods "x" is forbidden: exceeded quota: builds; raise its quota or allow the pod (Pod Security baseline), it is tried again",
        "no node has room for the build: 0/3 nodes: too few cpu; it starts as soon as one has, check resources and placement in the build settings",
        "the node cannot pull image fetch:1 of step fetch: manifest unknown; correct the image or imagePullSecrets in the build settings",
        "the node cannot start step fetch of the build: secret "x" not found; check the Secrets and ConfigMaps that the build settings name",
        "the build pod has not started yet: MountVolume.SetUp failed: secret "registry-push" not found; kubectl -n skill-builds describe pod sb-1-x says more",
      ]
    `);
  });

  test('believes the newest event', () => {
    const events = [
      event('FailedCreate', name, 'old', 100),
      event('FailedCreate', name, 'new', 1),
      event('FailedCreate', 'another-job', 'foreign', 0),
    ];
    expect(observe({ events })).toMatchObject({ message: expect.stringContaining(': new;') });
  });
});

describe('a Job that ended well without a usable report', () => {
  test.each<[string, Pod[]]>([
    ['no pod', []],
    ['no message', pushed(exited(0))],
    ['another message', pushed(exited(0, 'done'))],
    ['a forged digest', pushed(exited(0, JSON.stringify({ digest: 'sha256:12', size: 1 })))],
    ['a forged size', pushed(exited(0, JSON.stringify({ digest: `sha256:${hex('7')}`, size: -1 })))],
    ['a report by the author’s container', built(exited(0, RESULT))],
  ])('is built again: %s', (_name, pods) => {
    const state = observe({ job: job([['Complete']]), pods });
    expect(state).toMatchObject({ phase: 'Failed', class: 'Infra', reason: 'BuildInterrupted' });
  });
});
