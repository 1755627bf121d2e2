import { labelValue } from '../../api/names.ts';
import { PODS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import { STEPS, type Step } from '../../build/containers.ts';
import { BUILD_LABELS } from '../../build/names.ts';
import type { KubeObject } from '../../kube/types.ts';
import { listAll } from '../cluster/objects.ts';
import type { Session } from '../cluster/session.ts';

interface ContainerStatus {
  name: string;
  state?: {
    waiting?: { reason?: string; message?: string };
    running?: object;
    terminated?: { exitCode?: number; reason?: string };
  };
}

/** A pod, as far as it is read here. */
export interface Pod extends KubeObject {
  status?: {
    phase?: string;
    reason?: string;
    message?: string;
    initContainerStatuses?: ContainerStatus[];
    containerStatuses?: ContainerStatus[];
  };
}

/** What one container of a build pod is doing. */
export type Stage =
  | { kind: 'waiting'; why: string }
  | { kind: 'running' }
  | { kind: 'ended'; code: number; reason: string }
  /** It never ran, and never will. */
  | { kind: 'never' };

const isOver = (pod: Pod): boolean => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';

/** What a step of the build is doing. Pure. */
export function stageOf(pod: Pod, step: Step): Stage {
  const { initContainerStatuses = [], containerStatuses = [], reason, phase } = pod.status ?? {};
  const { state } = [...initContainerStatuses, ...containerStatuses].find(({ name }) => name === step) ?? {};
  if (state?.terminated)
    return { kind: 'ended', code: state.terminated.exitCode ?? -1, reason: state.terminated.reason ?? '' };
  if (state?.running) return { kind: 'running' };
  if (isOver(pod)) return { kind: 'never' };
  return { kind: 'waiting', why: state?.waiting?.reason ?? reason ?? phase ?? 'Pending' };
}

/** How a pod ended: by its last step; undefined while it goes on. Pure. */
export function endOf(pod: Pod): { ok: boolean; text: string } | undefined {
  for (const step of STEPS) {
    const stage = stageOf(pod, step);
    if (stage.kind === 'ended' && stage.code !== 0)
      return { ok: false, text: `${step} ended with ${stage.code}${stage.reason ? ` (${stage.reason})` : ''}` };
  }
  if (!isOver(pod)) return undefined;
  if (pod.status?.phase === 'Succeeded') return { ok: true, text: 'the image is built and pushed' };
  const why = [pod.status?.reason, pod.status?.message].filter(Boolean).join(': ');
  return { ok: false, text: `the pod failed${why ? `: ${why}` : ''}` };
}

/** The newest build pod of a Skill; that of its current Job where there is one. */
export async function newestPod(
  session: Session,
  skill: Skill,
  namespace: string,
  signal: AbortSignal,
): Promise<Pod | undefined> {
  const labelSelector = `${BUILD_LABELS.skillUID}=${labelValue(skill.metadata.uid ?? '')}`;
  const pods = await listAll<Pod>(session, PODS, { namespace, labelSelector }, signal);
  const made = (pod: Pod) => pod.metadata.creationTimestamp ?? '';
  const sorted = pods.sort((a, b) => made(b).localeCompare(made(a)));
  const job = skill.status?.candidate?.phase === 'Building' ? skill.status.candidate.jobName : undefined;
  if (job === undefined) return sorted[0];
  return sorted.find(({ metadata }) => metadata.labels?.['batch.kubernetes.io/job-name'] === job);
}
