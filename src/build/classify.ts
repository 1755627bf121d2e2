/** From a pod that failed to the reason: first the reasons that Kubernetes gives, then exit codes, then Kaniko's last line. */
import type { ContainerStateTerminated, ContainerStatus, Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Step } from './containers.ts';
import { EXIT } from './exits.ts';
import type { Failure } from './failures.ts';
import { clause, lastError } from './log.ts';

const LOCAL = { memory: 'resources.build.limits.memory', disk: "resources.build.limits['ephemeral-storage']" };
const KILLED = 137;
/** A RUN that a signal ended. */
const SIGNALLED = 255;

/** Status of the containers that exist so far, in the order in which they run. */
export function containersOf(pod: Pod): (ContainerStatus & { name: Step })[] {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  return [...initContainerStatuses, ...containerStatuses] as (ContainerStatus & { name: Step })[];
}

const isDisrupted = (pod: Pod): boolean =>
  (pod.status?.conditions ?? []).some(({ type, status }) => type === 'DisruptionTarget' && status === 'True');

function outOfDisk(detail: string | undefined): Failure {
  return {
    class: 'Disk',
    reason: 'BuildOutOfDisk',
    message: `the build used more disk than it may${clause(detail)}; make the image smaller, or ask the administrator to raise ${LOCAL.disk}`,
  };
}

function outOfMemory(step: Step): Failure {
  const message =
    step === 'build'
      ? `the build used more memory than it may; let the RUN commands use less at once, or ask the administrator to raise ${LOCAL.memory}`
      : `step ${step} of the build ran out of memory; ask the administrator to raise resources.${step}.limits.memory`;
  return { class: 'Memory', reason: 'BuildOutOfMemory', message };
}

const interrupted = (what: string): Failure => ({
  class: 'Infra',
  reason: 'BuildInterrupted',
  message: `the build was cut off from outside${clause(what)}; it is started again`,
});

/** The Job's own deadline passed. */
export const timedOut = (seconds: number): Failure => ({
  class: 'Timeout',
  reason: 'BuildTimeout',
  message: `the build did not end within ${seconds} s; make it shorter, look for a command that waits for input, or ask the administrator to raise deadlines.activeSeconds`,
});

type Rule = (detail: string) => Failure;

const FETCH: ReadonlyMap<number, Rule> = new Map<number, Rule>([
  [
    EXIT.ContextRefused,
    (detail) => ({
      class: 'Context',
      reason: 'BuildContextRefused',
      message: `the store did not hand out the package${clause(detail)}; the next attempt asks with new URLs`,
    }),
  ],
  [
    EXIT.ContextUnreachable,
    (detail) => ({
      class: 'Infra',
      reason: 'BuildContextUnreachable',
      message: `the build pod could not reach the store${clause(detail)}; it is started again, check that network.egress lets build pods reach the store`,
    }),
  ],
  [
    EXIT.ContextCorrupt,
    (detail) => ({
      class: 'Context',
      reason: 'StoreCorrupt',
      message: `the store sent another package than the one that was stored${clause(detail)}; annotate the Skill with skills.tfrobot.io/requestedAt to store it again`,
    }),
  ],
]);

const PUSH: ReadonlyMap<number, Rule> = new Map<number, Rule>([
  [
    EXIT.PushDenied,
    (detail) => ({
      class: 'Push',
      reason: 'RegistryDenied',
      message: `the registry refuses the image${clause(detail)}; check the push Secret in the build namespace and that it may write below the repository prefix`,
    }),
  ],
  [
    EXIT.PushUnavailable,
    (detail) => ({
      class: 'Infra',
      reason: 'RegistryUnavailable',
      message: `the registry could not take the image${clause(detail)}; it is tried again`,
    }),
  ],
  [
    EXIT.ImageTooLarge,
    (detail) => ({
      class: 'User',
      reason: 'ImageTooLarge',
      message: `the image is too large${clause(detail)}; start from a smaller base image and remove caches in the RUN that makes them`,
    }),
  ],
  [
    EXIT.LayoutRefused,
    (detail) => ({
      class: 'User',
      reason: 'ImageInvalid',
      message: `the build did not leave exactly one usable image${clause(detail)}; remove what the Dockerfile does below /kaniko`,
    }),
  ],
]);

const BASE_REFUSED =
  /UNAUTHORIZED|DENIED|MANIFEST_UNKNOWN|NAME_UNKNOWN|NAME_INVALID|x509:|certificate|not found: manifest|no child with platform/i;
const BASE_UNAVAILABLE =
  /TOOMANYREQUESTS|\b(?:429|500|502|503|504)\b|connection (?:reset|refused)|i\/o timeout|\bEOF\b|no such host|server misbehaving|TLS handshake timeout|context deadline|network is unreachable|no route to host/i;

/** Kaniko's own exit code is 1 for everything but a RUN with another code. */
function kanikoFailure(line: string): Failure {
  if (/no space left on device/i.test(line)) return outOfDisk(line);
  if (/waiting for process to exit/i.test(line)) return commandFailed(line);
  const user = { class: 'User', reason: 'BuildFailed' } as const;
  if (/dockerfile parse error|unknown instruction|parsing dockerfile|no source files/i.test(line)) {
    return { ...user, message: `the Dockerfile cannot be built${clause(line)}; correct it` };
  }
  if (BASE_REFUSED.test(line)) {
    return {
      class: 'User',
      reason: 'BaseImageRefused',
      message: `a registry does not hand out an image that the Dockerfile uses${clause(line)}; correct the name in FROM or COPY --from, builds pull without credentials`,
    };
  }
  if (BASE_UNAVAILABLE.test(line)) {
    return {
      class: 'Infra',
      reason: 'BaseImageUnavailable',
      message: `something that the Dockerfile downloads could not be had${clause(line)}; it is tried again, a mirror (baseImages.mirrors) makes builds independent of it`,
    };
  }
  return { ...user, message: `the image cannot be built${clause(line)}; the end of the log says more` };
}

const commandFailed = (line: string): Failure => ({
  class: 'User',
  reason: 'BuildCommandFailed',
  message: `a RUN command of the Dockerfile failed${clause(line)}; the end of the log shows what it said`,
});

function buildFailure({ exitCode, reason, message }: ContainerStateTerminated, log: string | undefined): Failure {
  // Where only the RUN's process was killed, Kaniko passes its code on and nothing says OOMKilled.
  if (exitCode === KILLED && reason === 'Error') return outOfMemory('build');
  const line = lastError(log ?? message ?? '');
  if (exitCode === 1) return kanikoFailure(line);
  return commandFailed(line || (exitCode === SIGNALLED ? 'a signal ended it' : `exit code ${exitCode}`));
}

function containerFailure(step: Step, state: ContainerStateTerminated, log: string | undefined): Failure {
  if (state.reason === 'StartError' || state.reason === 'ContainerCannotRun') {
    return {
      class: 'Setup',
      reason: 'BuildPodNotStarted',
      message: `the node could not start step ${step} of the build${clause(state.message)}; check the images and the runtime class in the build settings`,
    };
  }
  if (step === 'build') return buildFailure(state, log);
  const detail = lastError(state.message ?? '');
  const rule = (step === 'fetch' ? FETCH : PUSH).get(state.exitCode);
  return rule ? rule(detail) : interrupted(`step ${step} ended with code ${state.exitCode} ${detail}`);
}

/**
 * Why a pod of a build ended without an image; the first matching signal counts.
 * `deadlineSeconds` is given when the Job's deadline passed; `log` is the build container's log, where it was read.
 */
export function classifyPod(
  pod: Pod,
  options: { deadlineSeconds?: number | undefined; log?: string | undefined },
): Failure {
  const { reason, message } = pod.status ?? {};
  if (isDisrupted(pod)) return interrupted(message ?? reason ?? 'the pod was taken away');
  // Its own storage limit: an eviction for the node's sake carries DisruptionTarget.
  if (reason === 'Evicted') return outOfDisk(message);
  const failed = containersOf(pod).filter(({ state }) => (state?.terminated?.exitCode ?? 0) !== 0);
  const starved = failed.find(({ state }) => state?.terminated?.reason === 'OOMKilled');
  if (starved) return outOfMemory(starved.name);
  if (options.deadlineSeconds !== undefined) return timedOut(options.deadlineSeconds);
  const first = failed[0];
  if (first?.state?.terminated) return containerFailure(first.name, first.state.terminated, options.log);
  return interrupted([reason, message].filter(Boolean).join(' ') || 'the pod vanished');
}
