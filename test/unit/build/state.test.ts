import fc from 'fast-check';
import type { Job } from 'kubernetes-types/batch/v1.d.ts';
import type { ContainerState, Event, Pod } from 'kubernetes-types/core/v1.d.ts';
import { describe, expect, test } from 'vitest';
import { holdSecret } from '../../../src/base/redact.ts';
import type { Step } from '../../../src/build/containers.ts';
import { RETRY_RULES, retryAfterMs } from '../../../src/build/failures.ts';
import { buildJob } from '../../../src/build/manifest.ts';
import { type BuildState, buildStateOf, type Observation } from '../../../src/build/state.ts';
import { hex, INPUT, SETTINGS } from './samples.ts';

const NOW = Date.parse('2026-05-01T12:00:00Z');
const at = (secondsAgo: number) => new Date(NOW - secondsAgo * 1000).toISOString();

type Condition = [type: string, reason?: string];

function job(
  conditions: Condition[] = [],
  change: { suspend?: boolean; attempt?: number; startedAgo?: number } = {},
): Job {
  const base = buildJob({ ...INPUT, attempt: change.attempt ?? 1 }, SETTINGS);
  return {
    ...base,
    spec: { ...(base.spec as NonNullable<Job['spec']>), suspend: change.suspend ?? false },
    status: {
      startTime: at(change.startedAgo ?? 60) as never,
      conditions: conditions.map(([type, reason]) => ({ type, status: 'True', ...(reason ? { reason } : {}) })),
    },
  };
}

const failedJob = (attempt = 1) => job([['Failed', 'BackoffLimitExceeded']], { attempt });
const lateJob = () => job([['Failed', 'DeadlineExceeded']]);

const exited = (
  exitCode: number,
  message?: string,
  reason = exitCode === 0 ? 'Completed' : 'Error',
): ContainerState => ({
  terminated: { exitCode, reason, finishedAt: at(10) as never, ...(message === undefined ? {} : { message }) },
});
const waits = (reason: string, message?: string): ContainerState => ({
  waiting: { reason, ...(message === undefined ? {} : { message }) },
});
const RUNS: ContainerState = { running: { startedAt: at(5) as never } };
const DONE = exited(0);
const NOT_YET = waits('PodInitializing');

function pod(states: Partial<Record<Step, ContainerState>>, change: Pod['status'] = {}, name = 'sb-1-x'): Pod {
  const status = (step: Step) => ({ name: step, image: `${step}:1`, imageID: '', ready: false, restartCount: 0 });
  const of = (step: Step) => (states[step] ? [{ ...status(step), state: states[step] }] : []);
  return {
    metadata: { name, namespace: 'skill-builds', creationTimestamp: at(60) as never },
    status: {
      phase: 'Pending',
      initContainerStatuses: [...of('fetch'), ...of('build')],
      containerStatuses: of('push'),
      ...change,
    },
  };
}

const event = (reason: string, name: string | undefined, message: string, secondsAgo = 5): Event => ({
  involvedObject: { ...(name === undefined ? {} : { name }) },
  metadata: { name: 'e' },
  reason,
  message,
  lastTimestamp: at(secondsAgo) as never,
});

const observe = (change: Partial<Observation>): BuildState =>
  buildStateOf({ job: job(), pods: [], events: [], now: NOW, settings: SETTINGS, ...change });

const RESULT = JSON.stringify({ digest: `sha256:${hex('7')}`, size: 1234 });
const DISRUPTED = { conditions: [{ type: 'DisruptionTarget', status: 'True' }] };

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

const log = (line: string) => `INFO[0001] RUN make\nnoise\nerror building image: ${line}`;
const built = (state: ContainerState) => [pod({ fetch: DONE, build: state, push: NOT_YET }, { phase: 'Failed' })];
const fetched = (state: ContainerState) => [pod({ fetch: state, build: NOT_YET, push: NOT_YET }, { phase: 'Failed' })];
const pushed = (state: ContainerState) => [pod({ fetch: DONE, build: DONE, push: state }, { phase: 'Failed' })];
const kaniko = (line: string) => built(exited(1, log(line)));

describe('a failed attempt', () => {
  test.each<[string, Pod[], string, string, Job?]>([
    [
      'evicted by the node',
      [pod({ build: exited(137) }, { reason: 'Evicted', ...DISRUPTED })],
      'Infra',
      'BuildInterrupted',
    ],
    [
      'evicted for its own storage',
      [
        pod(
          { build: exited(137) },
          { reason: 'Evicted', message: 'Pod ephemeral local storage usage exceeds the total limit' },
        ),
      ],
      'Disk',
      'BuildOutOfDisk',
    ],
    ['preempted', [pod({ build: exited(143) }, DISRUPTED)], 'Infra', 'BuildInterrupted'],
    ['OOMKilled', built(exited(137, '', 'OOMKilled')), 'Memory', 'BuildOutOfMemory'],
    ['OOMKilled at the deadline', built(exited(137, '', 'OOMKilled')), 'Memory', 'BuildOutOfMemory', lateJob()],
    ['killed without a word', built(exited(137)), 'Memory', 'BuildOutOfMemory'],
    ['push out of memory', pushed(exited(137, '', 'OOMKilled')), 'Memory', 'BuildOutOfMemory'],
    ['killed at the deadline', built(exited(137)), 'Timeout', 'BuildTimeout', lateJob()],
    ['running at the deadline', built(RUNS), 'Timeout', 'BuildTimeout', lateJob()],
    [
      'never started at the deadline',
      [pod({ fetch: waits('ErrImagePull') })],
      'Setup',
      'BuildImagePullFailed',
      lateJob(),
    ],
    ['without a pod at the deadline', [], 'Timeout', 'BuildTimeout', lateJob()],
    ['without a pod', [], 'Infra', 'BuildInterrupted'],
    ['with a pod that says nothing', [pod({}, { phase: 'Failed' })], 'Infra', 'BuildInterrupted'],
    ['with a lost node', [pod({ build: RUNS }, { phase: 'Failed', reason: 'NodeLost' })], 'Infra', 'BuildInterrupted'],
    ['fetch refused', fetched(exited(10, 'error: package.tar …')), 'Context', 'BuildContextRefused'],
    ['fetch without network', fetched(exited(11)), 'Infra', 'BuildContextUnreachable'],
    ['fetch of other bytes', fetched(exited(12)), 'Context', 'StoreCorrupt'],
    ['fetch crashed', fetched(exited(1, 'TypeError')), 'Infra', 'BuildInterrupted'],
    ['push denied', pushed(exited(20)), 'Push', 'RegistryDenied'],
    ['push without a registry', pushed(exited(21)), 'Infra', 'RegistryUnavailable'],
    ['push of too much', pushed(exited(22)), 'User', 'ImageTooLarge'],
    ['push of a forged layout', pushed(exited(23)), 'User', 'ImageInvalid'],
    [
      'container that cannot start',
      built(exited(128, 'runc: no such file', 'StartError')),
      'Setup',
      'BuildPodNotStarted',
    ],
    [
      'RUN with a code of its own',
      built(exited(2, log('waiting for process to exit: exit status 2'))),
      'User',
      'BuildCommandFailed',
    ],
    ['RUN ended by a signal', built(exited(255)), 'User', 'BuildCommandFailed'],
    [
      'RUN with code 1',
      kaniko('failed to execute command: waiting for process to exit: exit status 1'),
      'User',
      'BuildCommandFailed',
    ],
    [
      'parse error',
      kaniko('parsing dockerfile: dockerfile parse error on line 3: unknown instruction: RNU'),
      'User',
      'BuildFailed',
    ],
    ['COPY of nothing', kaniko('resolving src: no source files specified'), 'User', 'BuildFailed'],
    [
      'base image unknown',
      kaniko('GET https://r/v2/x/manifests/9: MANIFEST_UNKNOWN: manifest unknown'),
      'User',
      'BaseImageRefused',
    ],
    [
      'base image private',
      kaniko('GET https://r/token: UNAUTHORIZED: authentication required'),
      'User',
      'BaseImageRefused',
    ],
    [
      'registry of the base with a bad certificate',
      kaniko('tls: x509: certificate signed by unknown authority'),
      'User',
      'BaseImageRefused',
    ],
    [
      'Docker Hub asks to slow down',
      kaniko('GET https://index.docker.io/v2/x: TOOMANYREQUESTS: too many'),
      'Infra',
      'BaseImageUnavailable',
    ],
    ['base registry down', kaniko('unexpected status code 503 Service Unavailable'), 'Infra', 'BaseImageUnavailable'],
    [
      'base registry unknown',
      kaniko('dial tcp: lookup r on 10.96.0.10:53: no such host'),
      'Infra',
      'BaseImageUnavailable',
    ],
    ['disk full', kaniko('write /usr/x: no space left on device'), 'Disk', 'BuildOutOfDisk'],
    [
      'port number that looks like a status',
      kaniko('failed to get fileinfo for /kaniko/skill/context/a5000: lstat'),
      'User',
      'BuildFailed',
    ],
    ['anything else', kaniko('something new'), 'User', 'BuildFailed'],
    ['build that said nothing', built(exited(1)), 'User', 'BuildFailed'],
  ])('%s', (_name, pods, failure, reason, given = failedJob()) => {
    expect(observe({ job: given, pods })).toMatchObject({ phase: 'Failed', class: failure, reason });
  });

  test('is ended by the kubelet, which leaves pod and log behind', () => {
    const late = pod({ fetch: DONE, build: exited(2) }, { phase: 'Failed', reason: 'DeadlineExceeded' });
    const pods = [{ ...late, spec: { containers: [], activeDeadlineSeconds: 2100 } }];
    const log = 'WARN[0001] MAINTAINER is deprecated, skipping\nstill at it';
    expect(observe({ job: failedJob(), pods, log })).toMatchObject({
      ...{ phase: 'Failed', class: 'Timeout', reason: 'BuildTimeout', retryAfterMs: 30_000 },
      ...{ logTail: '[warning] MAINTAINER is deprecated, skipping\nstill at it' },
      warnings: ['MAINTAINER is deprecated, skipping'],
    });
    const pulls = pod(
      { fetch: waits('ImagePullBackOff', 'Back-off') },
      { phase: 'Failed', reason: 'DeadlineExceeded' },
    );
    const never = [{ ...pulls, spec: { containers: [], activeDeadlineSeconds: 2100 } }];
    expect(observe({ job: failedJob(), pods: never })).toMatchObject({
      class: 'Setup',
      reason: 'BuildImagePullFailed',
    });
  });

  test('counts from FailureTarget on, before its pods have ended', () => {
    const state = observe({ job: job([['FailureTarget', 'DeadlineExceeded']]), pods: built(RUNS) });
    expect(state).toMatchObject({ phase: 'Failed', class: 'Timeout' });
  });

  test('says what to do', () => {
    const pods = [
      built(exited(137, '', 'OOMKilled')),
      fetched(exited(10, 'error: package.tar could not be downloaded: the URL is not valid any more (HTTP 403)')),
      pushed(exited(20, 'error: the push failed: unauthorized')),
      pushed(exited(22, 'error: the image has 6 bytes, the limit is 5')),
      kaniko('failed to execute command: waiting for process to exit: exit status 1'),
      kaniko('failed to get fileinfo for /kaniko/skill/context/missing.txt: no such file or directory'),
    ];
    const said = pods
      .map((one) => observe({ job: failedJob(), pods: one }))
      .map((state) => 'message' in state && state.message);
    expect(said).toMatchInlineSnapshot(`
      [
        "the build used more memory than it may; let the RUN commands use less at once, or ask the administrator to raise resources.build.limits.memory",
        "the store did not hand out the package: package.tar could not be downloaded: the URL is not valid any more (HTTP 403); the next attempt asks with new URLs",
        "the registry refuses the image: the push failed: unauthorized; check the push Secret in the build namespace and that it may write below the repository prefix",
        "the image is too large: the image has 6 bytes, the limit is 5; start from a smaller base image and remove caches in the RUN that makes them",
        "a RUN command of the Dockerfile failed: failed to execute command: waiting for process to exit: exit status 1; the end of the log shows what it said",
        "the image cannot be built: failed to get fileinfo for missing.txt: no such file or directory; the end of the log says more",
      ]
    `);
  });

  test('keeps the end of the build log, cleaned', () => {
    holdSecret('hunter2-hunter2');
    const text = `\u001b[31mred\u001b[0m\r\nprogress 1%\rprogress 100%\nhunter2-hunter2\u0000\n${log('x')}`;
    expect(observe({ job: failedJob(), pods: built(exited(1)), log: text })).toMatchObject({
      logTail: 'red\nprogress 100%\n***\n[info] RUN make\nnoise\nerror building image: x',
    });
  });

  test('prefers the log that was read to the end that the kubelet kept', () => {
    const state = observe({ job: failedJob(), pods: kaniko('old'), log: log('no space left on device') });
    expect(state).toMatchObject({ class: 'Disk' });
  });

  test('has no log where no author code ran', () => {
    expect(observe({ job: failedJob(), pods: fetched(exited(10, 'error: x')) })).not.toHaveProperty('logTail');
  });

  test('collects what Kaniko ignored', () => {
    const text = `WARN[0002] #969 kaniko does not support '--network' flags in RUN statements\n${log('x')}`;
    expect(observe({ job: failedJob(), pods: built(exited(1)), log: text })).toMatchObject({
      warnings: ["kaniko does not support '--network' flags in RUN statements"],
    });
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

describe('retries', () => {
  test('follow this table: milliseconds after attempts 1 to 6', () => {
    const row = (name: string) =>
      [1, 2, 3, 4, 5, 6].map((attempt) => retryAfterMs(name as keyof typeof RETRY_RULES, attempt) ?? 'never').join(' ');
    expect(Object.fromEntries(Object.keys(RETRY_RULES).map((name) => [name, row(name)]))).toMatchInlineSnapshot(`
      {
        "Capacity": "60000 120000 240000 480000 900000 900000",
        "Context": "5000 10000 20000 40000 never never",
        "Disk": "never never never never never never",
        "Infra": "30000 60000 120000 240000 never never",
        "Memory": "30000 never never never never never",
        "Push": "60000 120000 240000 480000 never never",
        "Setup": "300000 300000 300000 300000 300000 300000",
        "Timeout": "30000 never never never never never",
        "User": "never never never never never never",
      }
    `);
  });

  test('end for every class in which author code ran', () => {
    const endless = Object.entries(RETRY_RULES).filter(([, { attempts }]) => !Number.isFinite(attempts));
    expect(endless.map(([name]) => name)).toEqual(['Setup', 'Capacity']);
  });

  test('count by the attempt that stands in the Job', () => {
    const last = observe({ job: failedJob(5), pods: fetched(exited(11)) });
    expect(last).not.toHaveProperty('retryAfterMs');
    expect(last).toMatchObject({ message: expect.stringMatching(/\(attempt 5, the last one\)$/) });
    expect(observe({ job: failedJob(4), pods: fetched(exited(11)) })).toMatchObject({ retryAfterMs: 240_000 });
  });

  test('never wait longer than their bound, whatever the number', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), fc.constantFrom(...Object.keys(RETRY_RULES)), (attempt, name) => {
        const wait = retryAfterMs(name as keyof typeof RETRY_RULES, attempt);
        expect(wait === undefined || (wait >= 0 && wait <= 3_600_000)).toBe(true);
      }),
    );
  });
});

test('whatever stands in the logs, the state is one that a status can carry', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 5000 }), fc.integer({ min: 1, max: 255 }), (text, code) => {
      const state = observe({ job: failedJob(), pods: built(exited(code, text)), log: text });
      expect(state.phase).toBe('Failed');
      if (state.phase !== 'Failed') return;
      expect(Buffer.byteLength(state.logTail ?? '')).toBeLessThanOrEqual(2048);
      expect(state.message.length).toBeLessThan(1500);
      expect(/[^\P{Cc}\n\t]/u.test(state.message + (state.logTail ?? ''))).toBe(false);
    }),
  );
});
