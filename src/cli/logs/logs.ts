import { PODS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import { messageOf, stalled } from '../../base/errors.ts';
import { STEPS, type Step } from '../../build/containers.ts';
import { KubeError } from '../../kube/errors.ts';
import { findHome, type HomeFlags } from '../cluster/home.ts';
import { requireSkill } from '../cluster/objects.ts';
import type { Around } from '../cluster/requests.ts';
import { type ClusterFlags, inCluster, type Session } from '../cluster/session.ts';
import { hasOwnImage } from '../cluster/settled.ts';
import { reread, waitFor } from '../cluster/wait.ts';
import { EXIT, type ExitCode } from '../io.ts';
import { json, type Paint, painter, printable } from '../terminal.ts';
import { linesOf, tame } from './lines.ts';
import { endOf, newestPod, type Pod, stageOf } from './pod.ts';

export interface LogsFlags extends ClusterFlags, HomeFlags {
  follow: boolean;
  /** Milliseconds. */
  timeout: number;
  output: 'human' | 'json';
}

interface Run extends Around {
  session: Session;
  flags: LogsFlags;
  /** One line of the log. */
  line: (step: Step | 'kept', text: string) => void;
}

const STYLE = { fetch: 'dim', build: 'cyan', push: 'dim', kept: 'dim' } as const;

function printer({ io }: Around, output: LogsFlags['output'], paint: Paint): Run['line'] {
  if (output === 'json') return (step, line) => io.out(`${json({ step, line })}\n`);
  return (step, text) => io.out(`${paint(STYLE[step], step.padEnd(5))} ${text}\n`);
}

/** The end of the log that the status keeps; the reason for showing no more goes to standard error. */
function kept(skill: Skill, why: string, { io, line }: Run): ExitCode {
  const { candidate, served } = skill.status ?? {};
  io.err(`${printable(why)}\n`);
  if (candidate?.logTail) {
    io.err('The end of the log, as status.candidate.logTail keeps it:\n');
    for (const text of candidate.logTail.split('\n')) line('kept', tame(text));
  }
  if (candidate?.reason) io.err(`${candidate.reason}: ${printable(candidate.message ?? '')}\n`);
  else if (!candidate?.logTail && served?.image)
    io.err(`Served is version ${served.version} with image ${printable(served.image)}\n`);
  return candidate?.phase === 'Failed' ? EXIT.no : EXIT.ok;
}

/** The pod of the build, waiting for one that is about to come. */
async function podOf(skill: Skill, namespace: string, run: Run): Promise<Pod | undefined> {
  const { session, signal, io, clock, flags } = run;
  const found = await newestPod(session, skill, namespace, signal);
  if (found || !flags.follow) return found;
  const target = { kind: 'skill', object: skill } as const;
  return waitFor(
    async () => {
      const { object } = (await reread(session, target, signal)) as { object: Skill };
      const pod = await newestPod(session, object, namespace, signal);
      const { phase, reason } = object.status?.candidate ?? {};
      if (pod || (phase !== 'Queued' && phase !== 'Building')) return { done: true, value: pod };
      return { done: false, answered: true, text: `no pod yet: ${phase}${reason ? `, ${reason}` : ''}` };
    },
    { io, clock, timeoutMs: flags.timeout, what: `the build of ${skill.metadata.name}` },
    signal,
  );
}

/** Waits until the step has something to say; false when it never will. */
async function started(pod: Pod, step: Step, run: Run): Promise<boolean> {
  const { session, signal, io, clock, flags } = run;
  const { namespace = '', name } = pod.metadata;
  return waitFor(
    async () => {
      const now = await session.api.get<Pod>(PODS, namespace, name, signal);
      const stage = now ? stageOf(now, step) : ({ kind: 'never' } as const);
      if (stage.kind !== 'waiting') return { done: true, value: stage.kind !== 'never' };
      if (!flags.follow) return { done: true, value: false };
      return { done: false, answered: true, text: `${step}: ${stage.why}` };
    },
    { io, clock, timeoutMs: flags.timeout, what: `step ${step} of pod ${name}` },
    signal,
  );
}

/** Prints the log of every step in the order in which they run. */
async function follow(pod: Pod, run: Run): Promise<void> {
  for (const step of STEPS) {
    if (!(await started(pod, step, run))) return;
    // A container that is silent for a while does not even send the head of an answer.
    while (!(await printed(pod, step, run)));
  }
}

/** Prints one step to its end; false when nothing came within the deadline of an answer. */
async function printed(pod: Pod, step: Step, { session, signal, flags, line }: Run): Promise<boolean> {
  const { namespace = '', name } = pod.metadata;
  const query = { container: step, follow: flags.follow };
  let any = false;
  try {
    const bytes = session.api.stream(PODS, namespace, name, { path: 'log', query }, signal);
    for await (const text of linesOf(bytes)) {
      any = true;
      line(step, text);
    }
    return true;
  } catch (error) {
    if (any || !flags.follow || !(error instanceof KubeError) || error.reason !== 'Timeout') throw error;
    return false;
  }
}

/** How the pod ended; its status says so a moment after its log has. undefined: it goes on, or is gone. */
async function endedPod(pod: Pod, { session, signal, io, clock, flags }: Run): Promise<ReturnType<typeof endOf>> {
  const { namespace = '', name } = pod.metadata;
  return waitFor(
    async () => {
      const now = await session.api.get<Pod>(PODS, namespace, name, signal);
      const end = now && endOf(now);
      if (end || !now || !flags.follow) return { done: true, value: end };
      return { done: false, answered: true, text: `pod ${name} is ending` };
    },
    { io, clock, timeoutMs: flags.timeout, what: `pod ${name}` },
    signal,
  );
}

async function show(skill: Skill, run: Run): Promise<ExitCode> {
  const { session, signal, flags, io } = run;
  const { buildNamespace } = await findHome(session, flags, signal);
  let pod: Pod | undefined;
  try {
    pod = await podOf(skill, buildNamespace, run);
    if (!pod) return kept(skill, `No build pod of ${skill.metadata.name} is left in namespace ${buildNamespace}.`, run);
    await follow(pod, run);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof KubeError)) throw error;
    return kept(skill, `The log cannot be read from the pod: ${messageOf(error)}`, run);
  }
  const end = await endedPod(pod, run);
  if (end) io.err(`${end.text}\n`);
  return end?.ok === false ? EXIT.no : EXIT.ok;
}

/**
 * `skillctl logs --build`: the log of the build pod, else what the status keeps of it.
 * Exit code 1 when the build failed.
 */
export const logs = (name: string, flags: LogsFlags, around: Around): Promise<ExitCode> =>
  inCluster(flags, around.clock, async (session) => {
    const skill = await requireSkill(session, name, around.signal);
    if (!hasOwnImage(skill)) {
      const runtime = skill.status?.runtime ?? 'none yet';
      throw stalled(
        'NotRequired',
        `Skill ${skill.metadata.name} has no image of its own (runtime: ${runtime}), so nothing was built`,
      );
    }
    const line = printer(around, flags.output, painter(around.io.colors));
    return show(skill, { ...around, session, flags, line });
  });
