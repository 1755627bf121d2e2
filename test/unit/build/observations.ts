import type { Job } from 'kubernetes-types/batch/v1.d.ts';
import type { ContainerState, Event, Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Step } from '../../../src/build/containers.ts';
import { buildJob } from '../../../src/build/manifest.ts';
import { type BuildState, buildStateOf, type Observation } from '../../../src/build/state.ts';
import { hex, INPUT, SETTINGS } from './samples.ts';

const NOW = Date.parse('2026-05-01T12:00:00Z');
/** The moment so many seconds before NOW, in RFC 3339. */
export const at = (secondsAgo: number) => new Date(NOW - secondsAgo * 1000).toISOString();

type Condition = [type: string, reason?: string];

/** The build Job as the cluster holds it, with conditions that are true. */
export function job(
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

/** A Job whose only pod failed. */
export const failedJob = (attempt = 1) => job([['Failed', 'BackoffLimitExceeded']], { attempt });
/** A Job that ran into its deadline. */
export const lateJob = () => job([['Failed', 'DeadlineExceeded']]);

/** State of a container that ended with this code and termination message. */
export const exited = (
  exitCode: number,
  message?: string,
  reason = exitCode === 0 ? 'Completed' : 'Error',
): ContainerState => ({
  terminated: { exitCode, reason, finishedAt: at(10) as never, ...(message === undefined ? {} : { message }) },
});
/** State of a container that does not run yet. */
export const waits = (reason: string, message?: string): ContainerState => ({
  waiting: { reason, ...(message === undefined ? {} : { message }) },
});
export const RUNS: ContainerState = { running: { startedAt: at(5) as never } };
export const DONE = exited(0);
/** State of a container behind one that has not ended. */
export const NOT_YET = waits('PodInitializing');

/** The pod of an attempt; steps that are not named have no container status. */
export function pod(states: Partial<Record<Step, ContainerState>>, change: Pod['status'] = {}, name = 'sb-1-x'): Pod {
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

/** An event about the object of this name. */
export const event = (reason: string, name: string | undefined, message: string, secondsAgo = 5): Event => ({
  involvedObject: { ...(name === undefined ? {} : { name }) },
  metadata: { name: 'e' },
  reason,
  message,
  lastTimestamp: at(secondsAgo) as never,
});

/** The state that follows from an observation; what is not named is a Job without pods and events. */
export const observe = (change: Partial<Observation>): BuildState =>
  buildStateOf({ job: job(), pods: [], events: [], now: NOW, settings: SETTINGS, ...change });

/** What push reports when it has pushed. */
export const RESULT = JSON.stringify({ digest: `sha256:${hex('7')}`, size: 1234 });
/** Conditions of a pod that the cluster, not the author, ended. */
export const DISRUPTED = { conditions: [{ type: 'DisruptionTarget', status: 'True' }] };

/** A build log whose last line is this error. */
export const log = (line: string) => `INFO[0001] RUN make\nnoise\nerror building image: ${line}`;
/** The failed pod whose build step ended like this. */
export const built = (state: ContainerState) => [
  pod({ fetch: DONE, build: state, push: NOT_YET }, { phase: 'Failed' }),
];
/** The failed pod whose fetch step ended like this. */
export const fetched = (state: ContainerState) => [
  pod({ fetch: state, build: NOT_YET, push: NOT_YET }, { phase: 'Failed' }),
];
/** The failed pod whose push step ended like this. */
export const pushed = (state: ContainerState) => [pod({ fetch: DONE, build: DONE, push: state }, { phase: 'Failed' })];
/** The failed pod whose builder ended with this error. */
export const kaniko = (line: string) => built(exited(1, log(line)));
