import type { Job, JobCondition } from 'kubernetes-types/batch/v1.d.ts';
import type { Event, Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Reason } from '../base/reasons.ts';
import { redact } from '../base/redact.ts';
import { classifyPod, containersOf, timedOut } from './classify.ts';
import { STEPS, type Step } from './containers.ts';
import { type Failure, type FailureClass, RETRY_RULES, retryAfterMs } from './failures.ts';
import { ignoredSyntax, logTail } from './log.ts';
import { BUILD_LABELS } from './names.ts';
import { forbiddenPod, waitingPod } from './pending.ts';
import { parseResult } from './result.ts';
import type { BuildSettings } from './settings.ts';

/** What is known about one attempt. */
export interface Observation {
  /** The Job; undefined: there is none. Never a reason to build what the status says is done. */
  job: Job | undefined;
  /** Its pods, in any order. */
  pods: readonly Pod[];
  /** Events of the Job and its pods; only needed while it waits. */
  events: readonly Event[];
  /** The build container's log, or its end; undefined: not read. */
  log?: string | undefined;
  /** Milliseconds since the epoch. */
  now: number;
  settings: Pick<BuildSettings, 'deadlines'>;
}

/** Where one attempt stands. */
export type BuildState =
  /** There is no Job. */
  | { phase: 'NotStarted' }
  /** The Job waits for its Secret and for being resumed. */
  | { phase: 'Suspended' }
  /** The Job is being deleted. */
  | { phase: 'Deleting' }
  /** Nothing runs yet; `retryAfterMs` is how long it is worth waiting before the next look. */
  | { phase: 'Pending'; reason: Reason; message: string; remainingMs: number }
  | { phase: 'Running'; step: Step }
  /** What `push` reports. It counts only once the registry confirms the digest. */
  | { phase: 'Succeeded'; digest: string; size: number; warnings: string[] }
  | {
      phase: 'Failed';
      class: FailureClass;
      reason: Reason;
      message: string;
      /** The end of the build log; absent where no author code ran. */
      logTail?: string;
      /** Milliseconds until the next attempt; absent: none, only new content or the annotation `rebuild` starts one. */
      retryAfterMs?: number;
      /** Check registry, credential and bucket before the next attempt. */
      preflight: boolean;
      warnings: string[];
    };

const conditionOf = (job: Job, type: string): JobCondition | undefined =>
  job.status?.conditions?.find((condition) => condition.type === type && condition.status === 'True');

/** It is certain how the Job ends, though its pod may not have ended yet. */
export const hasVerdict = (job: Job): boolean =>
  ['Complete', 'SuccessCriteriaMet', 'Failed', 'FailureTarget'].some((type) => conditionOf(job, type));

const timeOf = (text: string | undefined): number => (text === undefined ? 0 : Date.parse(text) || 0);

/** The pod that counts: a replaced pod is older than its replacement. */
export const newestPod = (pods: readonly Pod[]): Pod | undefined =>
  [...pods].sort((a, b) => timeOf(b.metadata?.creationTimestamp) - timeOf(a.metadata?.creationTimestamp))[0];

const terminatedStep = (pod: Pod | undefined, step: Step) =>
  pod && containersOf(pod).find(({ name }) => name === step)?.state?.terminated;

/** The build container's log where it was read, else the end that the kubelet kept. */
const logOf = (observation: Observation, pod: Pod | undefined): string =>
  observation.log ?? terminatedStep(pod, 'build')?.message ?? '';

function failed(failure: Failure, observation: Observation, pod: Pod | undefined): BuildState {
  const attempt = Number(observation.job?.metadata?.labels?.[BUILD_LABELS.attempt]) || 1;
  const wait = retryAfterMs(failure.class, attempt);
  const log = logOf(observation, pod);
  const tail = logTail(log);
  const last =
    wait === undefined && RETRY_RULES[failure.class].attempts > 1 ? ` (attempt ${attempt}, the last one)` : '';
  return {
    phase: 'Failed',
    class: failure.class,
    reason: failure.reason,
    message: redact(failure.message) + last,
    ...(tail === '' ? {} : { logTail: tail }),
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
    preflight: RETRY_RULES[failure.class].preflight,
    warnings: ignoredSyntax(log),
  };
}

function succeeded(observation: Observation): BuildState {
  const pod = observation.pods.find((one) => terminatedStep(one, 'push')?.exitCode === 0);
  const result = parseResult(terminatedStep(pod, 'push')?.message);
  if (result) return { phase: 'Succeeded', ...result, warnings: ignoredSyntax(logOf(observation, pod)) };
  const what = pod ? 'it pushed an image and reported no digest' : 'its pod was deleted before the digest was read';
  return failed(
    { class: 'Infra', reason: 'BuildInterrupted', message: `the build ended, but ${what}; it is started again` },
    observation,
    pod,
  );
}

function ended(observation: Observation, job: Job, condition: JobCondition): BuildState {
  const pod = newestPod(observation.pods);
  const byKubelet = pod?.status?.reason === 'DeadlineExceeded' ? pod.spec?.activeDeadlineSeconds : undefined;
  const byJob = condition.reason === 'DeadlineExceeded' ? (job.spec?.activeDeadlineSeconds ?? 0) : undefined;
  const deadlineSeconds = byKubelet ?? byJob;
  const late = deadlineSeconds !== undefined;
  if (late && pod && containersOf(pod).every(({ state }) => !state?.running && !state?.terminated)) {
    return failed(waitingPod(pod, observation.events), observation, pod);
  }
  if (pod) return failed(classifyPod(pod, { deadlineSeconds, log: observation.log }), observation, pod);
  if (deadlineSeconds !== undefined) {
    const forbidden = forbiddenPod(job.metadata?.name ?? '', observation.events);
    return failed(forbidden ?? timedOut(deadlineSeconds), observation, pod);
  }
  return failed(
    {
      class: 'Infra',
      reason: 'BuildInterrupted',
      message: 'the build failed and its pod was deleted before it could be looked at; it is started again',
    },
    observation,
    pod,
  );
}

/** When the waiting that goes on now began: at the start of the Job, or at the end of the container before. */
function waitingSince(job: Job, pod: Pod | undefined): number {
  const ends = pod ? containersOf(pod).map(({ state }) => timeOf(state?.terminated?.finishedAt)) : [];
  return Math.max(timeOf(job.status?.startTime ?? job.metadata?.creationTimestamp), ...ends);
}

function pending(observation: Observation, job: Job, pod: Pod | undefined): BuildState {
  const why: Failure = pod
    ? waitingPod(pod, observation.events)
    : (forbiddenPod(job.metadata?.name ?? '', observation.events) ?? {
        class: 'Setup',
        reason: 'BuildPodNotStarted',
        message: 'the Job controller has not created the build pod yet; check that kube-controller-manager runs',
      });
  const deadline = waitingSince(job, pod) + observation.settings.deadlines.pendingSeconds * 1000;
  const remainingMs = deadline - observation.now;
  if (remainingMs <= 0) return failed(why, observation, pod);
  return { phase: 'Pending', reason: why.reason, message: redact(why.message), remainingMs };
}

/** The container that runs or has just failed, or that runs next when the one before has just ended and nothing holds it up. */
function runningStep(pod: Pod): Step | undefined {
  const containers = containersOf(pod);
  const now = containers.find(({ state }) => state?.running || (state?.terminated?.exitCode ?? 0) !== 0);
  if (now) return now.name;
  const done = containers.filter(({ state }) => state?.terminated).length;
  const next = containers[done];
  const quiet = ['PodInitializing', 'ContainerCreating', undefined].includes(next?.state?.waiting?.reason);
  return done > 0 && quiet ? (next?.name ?? STEPS[STEPS.length - 1]) : undefined;
}

/**
 * Where an attempt stands, from what the cluster shows of it.
 * Pure. A failure counts from the condition FailureTarget on, which comes before the pods have ended. Classes and their retries:
 * `RETRY_RULES`. `Pending` turns into `Failed` when `deadlines.pendingSeconds` pass without a running container.
 */
export function buildStateOf(observation: Observation): BuildState {
  const { job } = observation;
  if (!job) return { phase: 'NotStarted' };
  if (job.metadata?.deletionTimestamp) return { phase: 'Deleting' };
  if (conditionOf(job, 'Complete') ?? conditionOf(job, 'SuccessCriteriaMet')) return succeeded(observation);
  const failure = conditionOf(job, 'Failed') ?? conditionOf(job, 'FailureTarget');
  if (failure) return ended(observation, job, failure);
  if (job.spec?.suspend) return { phase: 'Suspended' };
  const pod = newestPod(observation.pods);
  const step = pod && runningStep(pod);
  return step ? { phase: 'Running', step } : pending(observation, job, pod);
}
