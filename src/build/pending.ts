/** Why the pod of a build does not run yet. */
import type { Event, Pod } from 'kubernetes-types/core/v1.d.ts';
import { containersOf } from './classify.ts';
import type { Failure } from './failures.ts';
import { clause } from './log.ts';

const PULL = new Set([
  'ImagePullBackOff',
  'ErrImagePull',
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImageInspectError',
]);
const REFUSED = new Set(['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError']);
/** Events of a pod that say why nothing moves. */
const POD_EVENTS = new Set(['FailedMount', 'FailedAttachVolume', 'FailedCreatePodSandBox', 'FailedScheduling']);
const timeOf = (event: Event): number =>
  Date.parse(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp ?? '') ||
  0;

/** The newest event about an object with one of the reasons. */
function newest(events: readonly Event[], name: string | undefined, reasons: ReadonlySet<string>): Event | undefined {
  return events
    .filter(({ involvedObject, reason }) => involvedObject.name === name && reason && reasons.has(reason))
    .sort((a, b) => timeOf(b) - timeOf(a))[0];
}

/** A Job whose pod the cluster did not create; undefined while it says nothing about it. */
export function forbiddenPod(jobName: string, events: readonly Event[]): Failure | undefined {
  const event = newest(events, jobName, new Set(['FailedCreate']));
  if (!event) return undefined;
  return {
    class: 'Setup',
    reason: 'BuildPodForbidden',
    message: `the build namespace does not let the pod be created${clause(event.message)}; raise its quota or allow the pod (Pod Security baseline), it is tried again`,
  };
}

function unschedulable(pod: Pod): Failure | undefined {
  const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (condition?.status !== 'False') return undefined;
  return {
    class: 'Capacity',
    reason: 'BuildUnschedulable',
    message: `no node has room for the build${clause(condition.message)}; it starts as soon as one has, check resources and placement in the build settings`,
  };
}

/** What keeps a pod from running its next container. `Setup` without a known cause when Kubernetes gives none. */
export function waitingPod(pod: Pod, events: readonly Event[]): Failure {
  const room = unschedulable(pod);
  if (room) return room;
  for (const { name, image, state } of containersOf(pod)) {
    const { reason, message } = state?.waiting ?? {};
    if (reason && PULL.has(reason)) {
      return {
        class: 'Setup',
        reason: 'BuildImagePullFailed',
        message: `the node cannot pull image ${image} of step ${name}${clause(message ?? reason)}; correct the image or imagePullSecrets in the build settings`,
      };
    }
    if (reason && REFUSED.has(reason)) {
      return {
        class: 'Setup',
        reason: 'BuildPodNotStarted',
        message: `the node cannot start step ${name} of the build${clause(message ?? reason)}; check the Secrets and ConfigMaps that the build settings name`,
      };
    }
  }
  const event = newest(events, pod.metadata?.name, POD_EVENTS);
  return {
    class: 'Setup',
    reason: 'BuildPodNotStarted',
    message: `the build pod has not started yet${clause(event?.message)}; kubectl -n ${pod.metadata?.namespace ?? ''} describe pod ${pod.metadata?.name ?? ''} says more`,
  };
}
