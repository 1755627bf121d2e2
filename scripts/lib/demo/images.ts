import { setTimeout as delay } from 'node:timers/promises';
import { startCluster, whyNoNode } from '../../../test/cluster/start.ts';
import type { EngineName } from '../../../test/support/byo/parts.ts';
import { type ByoStage, openByoStage } from '../../../test/support/byo/stage.ts';
import type { K8sObject } from '../../../test/support/k8s.ts';
import { isReady } from '../../../test/support/market.ts';
import { duration } from './screen.ts';
import { progress, type Stage } from './stage.ts';

const SOURCE = 'images';
const ENGINES: readonly EngineName[] = ['e2b', 'cubesandbox'];
const LOOK_MS = 100;
const READY_MS = 300_000;
const GREETING = 'Hello from an image of its own.\n';

const nameOf = (engine: EngineName): string => `greeting-${engine}`;

/** What a Skill is doing, or that it is done. */
function phaseOf(object: K8sObject | undefined): string | undefined {
  if (object === undefined) return undefined;
  if (isReady(object)) return `Ready, template ${Object.values(object.status.templateIDs ?? {}).join()}`;
  const { candidate } = object.status ?? {};
  if (candidate?.phase === 'Failed')
    throw new Error(`${object.metadata.name}: ${candidate.reason} ${candidate.message}`);
  return candidate?.phase;
}

/** Prints every phase of every Skill as it comes, until all are Ready. */
async function watch({ screen, signal }: Stage, byo: ByoStage): Promise<K8sObject[]> {
  const began = performance.now();
  const last = new Map<string, string>();
  while (performance.now() - began < READY_MS) {
    const skills = await Promise.all(
      ENGINES.map((engine) => byo.k8s.get(byo.operator.skill(`${SOURCE}.p.${nameOf(engine)}`))),
    );
    for (const skill of skills) {
      const phase = phaseOf(skill);
      const name = skill?.spec.path.split('/').at(-1);
      if (phase === undefined || last.get(name) === phase) continue;
      last.set(name, phase);
      const text = phase.startsWith('Ready') ? screen.paint('green', phase) : phase;
      screen.say(`${duration(performance.now() - began).padStart(7)}  ${name.padEnd(20)}  ${text}`);
    }
    const ready = skills.filter((skill) => skill !== undefined && isReady(skill));
    if (ready.length === ENGINES.length) return ready as K8sObject[];
    await byo.operator.check();
    await delay(LOOK_MS, undefined, { signal });
  }
  throw new Error(`the images were not ready within ${duration(READY_MS)}`);
}

async function open(stage: Stage): Promise<ByoStage> {
  const { screen, signal, defer, unlessStopped } = stage;
  const say = (line: string): void => progress(screen, line);
  const starting = startCluster({ kubeconfig: '', node: true, signal, say });
  defer(async () => await (await starting).stop());
  const { node, ...info } = (await unlessStopped(starting)).info;
  if (!node) throw new Error('the cluster came up without its node');
  const opening = openByoStage(info, node, { say });
  defer(async () => await (await opening)[Symbol.asyncDispose]());
  return await unlessStopped(opening);
}

/** Builds and registers a skill with its own Dockerfile for each engine, on a second cluster that has a node; says why where none can run. */
export async function showImages(stage: Stage): Promise<string> {
  const { screen } = stage;
  const obstacle = await whyNoNode({ signal: stage.signal });
  if (obstacle !== undefined) {
    screen.tell(obstacle);
    return 'left out: no node can run on this machine';
  }
  screen.tell(
    'A second cluster has a node: kubelet, containerd, a registry and Kaniko; the first run on a machine makes them, which takes some minutes. The two engines are stubs that speak the published APIs.',
  );
  const byo = await open(stage);
  const dockerfile = byo.from('COPY greeting.txt /greeting.txt', 'RUN cat /greeting.txt');
  screen.say(
    '',
    ...dockerfile
      .trimEnd()
      .split('\n')
      .map((line) => screen.paint('cyan', line)),
    '',
  );
  const skill = (engine: EngineName) => byo.skill(engine, nameOf(engine), dockerfile, { 'greeting.txt': GREETING });
  await byo.market(SOURCE, Object.fromEntries(ENGINES.map((engine) => [nameOf(engine), skill(engine)])));
  const ready = await watch(stage, byo);
  for (const { status } of ready)
    screen.tell(`${status.served.engine} starts ${status.served.templateID} from ${status.served.image}`, 'dim');
  return `${ready.length} Skills are Ready, each with an image in the registry and a template id of its engine`;
}
