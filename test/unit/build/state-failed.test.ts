import fc from 'fast-check';
import type { Job } from 'kubernetes-types/batch/v1.d.ts';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { describe, expect, test } from 'vitest';
import { holdSecret } from '../../../src/base/redact.ts';
import {
  built,
  DISRUPTED,
  DONE,
  exited,
  failedJob,
  fetched,
  job,
  kaniko,
  lateJob,
  log,
  observe,
  pod,
  pushed,
  RUNS,
  waits,
} from './observations.ts';

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
