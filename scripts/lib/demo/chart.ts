import { setTimeout as delay } from 'node:timers/promises';
import { stringify } from 'yaml';
import { settledLeader } from '../../../test/support/chart/observe.ts';
import { type ChartStage, HOME, openChartStage, RELEASE, ROLLOUT_MS } from '../../../test/support/chart/stage.ts';
import type { Values } from '../../../test/support/helm.ts';
import type { K8sObject } from '../../../test/support/k8s.ts';
import { logsOf } from '../../../test/support/pods.ts';
import { duration } from './screen.ts';
import type { SkillView } from './skills.ts';
import { type Hands, NAMESPACE, progress, type Stage } from './stage.ts';
import { type Cell, table } from './table.ts';

const CHART = 'charts/skill-operator';
const LOOK_MS = 150;
const GONE_MS = 120_000;

/** Starts the cluster with its node; builds of images are another demonstration's. */
export async function bringUpChart(stage: Stage): Promise<ChartStage> {
  const { screen, signal, defer, unlessStopped } = stage;
  const opening = openChartStage(NAMESPACE, (line) => progress(screen, line), signal);
  defer(async () => await (await opening)[Symbol.asyncDispose]());
  const chart = await unlessStopped(opening);
  await chart.prepare();
  return chart;
}

/** What the steps about Skills need; a pod that was started again is an operator that died. */
export const handsOf = (chart: ChartStage): Hands => ({
  k8s: chart.k8s,
  info: chart.info,
  bucket: chart.bucket,
  source: (name) => chart.source(name),
  skill: (name) => chart.skill(name),
  check: async () => {
    const fallen = (await chart.pods()).find(({ status }) => (status?.containerStatuses?.[0]?.restartCount ?? 0) > 0);
    if (fallen) throw new Error(`the operator in pod ${fallen.metadata.name} ended and was started again`);
  },
});

/** What the controller's pods have logged, line by line. */
export async function logsOfPods(chart: ChartStage): Promise<{ level?: string }[]> {
  const texts = (await chart.pods(true)).map(({ metadata }) =>
    logsOf(chart.k8s, { name: metadata.name, namespace: HOME }),
  );
  const lines = (await Promise.all(texts)).flatMap((text) => text.split('\n'));
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as { level?: string });
}

/** Two replicas; the builds are left out. */
export function demoValues(chart: ChartStage): Values {
  const values = chart.values();
  const { store } = values.config as { store: object };
  return { ...values, config: { store } };
}

const stateOf = ({ metadata, status }: K8sObject): Cell => {
  if (metadata.deletionTimestamp) return { text: 'Terminating', style: 'dim' };
  const container = status?.containerStatuses?.[0];
  if (container?.ready) return { text: 'Ready', style: 'green' };
  return { text: container?.state?.waiting?.reason ?? status?.phase ?? 'Pending', style: 'yellow' };
};

/** Shows the controller's pods until `done` says what came of it: drawn in place, or in a plain log a line for each change. */
async function watchPods<T>(stage: Stage, chart: ChartStage, done: () => Promise<T | undefined>): Promise<T> {
  const { screen, signal } = stage;
  const began = performance.now();
  const last = new Map<string, string>();
  while (performance.now() - began < ROLLOUT_MS) {
    const [pods, leader, outcome] = await Promise.all([chart.pods(true), chart.leader(), done()]);
    const rows = pods.map((pod): Cell[] => [
      { text: pod.metadata.name },
      stateOf(pod),
      { text: pod.metadata.name === leader ? 'holds the Lease' : '' },
    ]);
    const lines = table(['POD', 'STATE', ''], rows, screen.width, screen.paint);
    if (screen.liveRows !== undefined) screen.live(lines);
    for (const [name, state, lease] of screen.liveRows === undefined ? rows : []) {
      const text = [state?.text, lease?.text].filter(Boolean).join(', ');
      if (last.get(name?.text ?? '') === text) continue;
      last.set(name?.text ?? '', text);
      screen.say(`${duration(performance.now() - began).padStart(7)}  ${name?.text}  ${text}`);
    }
    if (outcome !== undefined) return outcome;
    await delay(LOOK_MS, undefined, { signal });
  }
  throw new Error(`the pods of the controller did not come so far within ${duration(ROLLOUT_MS)}`);
}

const rollout = (stage: Stage, chart: ChartStage): Promise<string> =>
  watchPods(stage, chart, async () => ((await chart.isRolledOut()) && (await chart.leader())) || undefined);

/** Installs the chart and shows its pods come up. */
export async function showInstall(stage: Stage, chart: ChartStage, values: Values): Promise<string> {
  const { screen } = stage;
  screen.say(
    ...stringify(values)
      .trimEnd()
      .split('\n')
      .map((line) => screen.paint('cyan', line)),
    '',
  );
  screen.command(`helm install ${RELEASE} ${CHART} -n ${HOME} --values values.yaml`);
  const notes = await chart.install(values);
  const from = notes.indexOf('NOTES:');
  screen.say(
    ...notes
      .slice(from)
      .trimEnd()
      .split('\n')
      .map((line) => screen.paint('dim', line)),
    '',
  );
  const leader = await rollout(stage, chart);
  return `both pods are Ready, ${leader} works and the other waits for its Lease`;
}

/** Runs the chart's own test. */
export async function showTest({ screen, unlessStopped }: Stage, chart: ChartStage): Promise<string> {
  screen.command(`helm test ${RELEASE} -n ${HOME}`);
  const text = await unlessStopped(chart.helm(['test', RELEASE]));
  if (!/Phase: +Succeeded/.test(text)) throw new Error(text);
  return 'a pod of the cluster reached the operator by its Service, and it is ready';
}

/** Throws when one of the Skills was written since it was seen last. */
async function unharmed(chart: ChartStage, before: readonly SkillView[]): Promise<void> {
  const written: string[] = [];
  for (const { name, object } of before) {
    const now = await chart.k8s.get(chart.skill(object.metadata.name));
    if (now?.metadata.resourceVersion !== object.metadata.resourceVersion) written.push(name);
  }
  if (written.length > 0) throw new Error(`these Skills were written for nothing: ${written.join(', ')}`);
}

/** Upgrades the release with another setting: every pod is replaced, no Skill is written. */
export async function showUpgrade(
  stage: Stage,
  chart: ChartStage,
  values: Values,
  before: readonly SkillView[],
): Promise<string> {
  const old = (await chart.pods()).map(({ metadata }) => metadata.name);
  stage.screen.command(`helm upgrade ${RELEASE} ${CHART} -n ${HOME} --values values.yaml --set config.skillWorkers=8`);
  await chart.upgrade({ ...values, config: { ...(values.config as object), skillWorkers: 8 } });
  await watchPods(stage, chart, async () => {
    const pods = await chart.pods(true);
    const replaced = pods.every(({ metadata }) => !old.includes(metadata.name));
    return (replaced && (await chart.isRolledOut()) && (await chart.leader())) || undefined;
  });
  const leader = await stage.unlessStopped(settledLeader(chart, before.length));
  await stage.unlessStopped(unharmed(chart, before));
  return `both pods are new, ${leader} has looked at all ${before.length} Skills and written none`;
}

/** Deletes the pod that works; the other one takes over. */
export async function showFailover(stage: Stage, chart: ChartStage): Promise<string> {
  const leader = await chart.leader();
  stage.screen.command(`kubectl delete pod ${leader} -n ${HOME}`);
  const began = performance.now();
  await chart.k8s.delete({ apiVersion: 'v1', kind: 'Pod', name: leader, namespace: HOME });
  const next = await watchPods(stage, chart, async () => {
    const now = await chart.leader();
    return now === '' || now === leader ? undefined : now;
  });
  return `${next} leads ${duration(performance.now() - began)} later`;
}

/** Uninstalls the release; what a person applied stays. */
export async function showUninstall({ screen, unlessStopped }: Stage, chart: ChartStage): Promise<string> {
  screen.command(`helm uninstall ${RELEASE} -n ${HOME}`);
  await unlessStopped(chart.helm(['uninstall', RELEASE, '--wait', '--timeout', `${GONE_MS / 1000}s`]));
  const kind = { apiVersion: 'skills.tfrobot.io/v1alpha1', kind: 'Skill', namespace: NAMESPACE };
  const left = await chart.k8s.list(kind);
  return `the release is gone; the CRDs and ${left.length} Skills stay until you delete them`;
}
