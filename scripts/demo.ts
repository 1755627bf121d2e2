/**
 * `make demo`: a marketplace in Git becomes validated, stored skills, on a real API server, S3 server and Git server of its own.
 * URL=<git url> takes that marketplace instead of examples/marketplace; KEEP=1 leaves everything up until Ctrl-C.
 * CHART=1 installs the chart with the operator's image on a node and goes on to upgrade, fail-over and uninstall.
 * Exit code 0 when every step came true, 1 when one did not, 130 when it was stopped.
 */
import { once } from 'node:events';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Cluster, whyNoNode } from '../test/cluster/start.ts';
import type { ChartStage } from '../test/support/chart/stage.ts';
import type { ClusterInfo } from '../test/support/cluster-info.ts';
import { createRepository, type TestRepository, type TestTree } from '../test/support/git.ts';
import type { Operator } from '../test/support/operator.ts';
import { applySource, SOURCE, urlObstacle, watchSkills } from './lib/demo/apply.ts';
import { showBucket } from './lib/demo/bucket.ts';
import {
  bringUpChart,
  demoValues,
  handsOf,
  logsOfPods,
  showFailover,
  showInstall,
  showTest,
  showUninstall,
  showUpgrade,
} from './lib/demo/chart.ts';
import { showImages } from './lib/demo/images.ts';
import { breakSkill, FILE, mendSkill, type Repairable } from './lib/demo/repair.ts';
import { duration, Screen } from './lib/demo/screen.ts';
import { checkExamples, type SkillView } from './lib/demo/skills.ts';
import {
  BUCKET,
  bringUpCluster,
  bringUpOperator,
  createStage,
  kubernetesVersion,
  type Stage,
} from './lib/demo/stage.ts';
import { invitation, limits, welcome } from './lib/demo/texts.ts';

const EXAMPLES = fileURLToPath(new URL('../examples/marketplace', import.meta.url));
const EXIT = { done: 0, failed: 1, stopped: 130 } as const;
const LOG_LINES = 8;

const began = performance.now();
const url = process.env.URL || undefined;
const isOn = (value: string | undefined): boolean => ![undefined, '', '0', 'false'].includes(value);
const keep = isOn(process.env.KEEP);
const withChart = isOn(process.env.CHART);
const screen = new Screen(process.stdout, process.env);
const stopping = new AbortController();
/** What has come up so far; a failure tells what it can from it. */
const up: { cluster?: Cluster; operator?: Operator; chart?: ChartStage } = {};
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(name, () => stopping.abort(new DOMException('stopped', 'AbortError')));

/** All files of a folder with their executable bits. */
async function readTree(folder: string): Promise<TestTree> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const tree: TestTree = {};
  for (const file of files.sort()) {
    const executable = ((await stat(file)).mode & 0o100) !== 0;
    tree[relative(folder, file)] = { content: await readFile(file), mode: executable ? '100755' : '100644' };
  }
  return tree;
}

/** The demo's own repository, with examples/marketplace in it. */
interface Pushed {
  repository: TestRepository;
  original: string;
  summary: string;
}

async function pushExamples({ git }: ClusterInfo): Promise<Pushed> {
  const tree = await readTree(EXAMPLES);
  const repository = await createRepository(git.root, SOURCE);
  const commit = await repository.commit(tree, { message: 'Nine example skills' });
  const skills = Object.keys(tree).filter((path) => /^plugins\/[^/]+\/skills\/[^/]+\/SKILL\.md$/.test(path));
  const plugins = new Set(skills.map((path) => path.split('/')[1]));
  return {
    repository,
    original: await readFile(join(EXAMPLES, FILE), 'utf8'),
    summary: `${skills.length} skills in ${plugins.size} plugins, ${Object.keys(tree).length} files: main@${commit.slice(0, 7)}`,
  };
}

async function startUp(stage: Stage): Promise<Pushed | undefined> {
  let pushed: Pushed | undefined;
  await stage.step('Start an API server, an S3 server and a Git server', async () => {
    screen.say('on loopback addresses; the first run on a machine compiles them, which takes some minutes');
    const cluster = await bringUpCluster(stage);
    up.cluster = cluster;
    const { s3, git } = cluster.info;
    return `Kubernetes ${await kubernetesVersion(cluster.info)}, S3 at ${s3.endpoint}, Git at ${git.httpUrl}`;
  });
  const { cluster } = up;
  if (!cluster) throw new Error('there is no cluster');
  if (url === undefined) {
    await stage.step('Push examples/marketplace to the Git server', async () => {
      pushed = await pushExamples(cluster.info);
      return pushed.summary;
    });
  }
  await stage.step('Start the operator', async () => {
    screen.say('as ServiceAccount skill-operator, with the rules of charts/skill-operator/rbac and no other right');
    const operator = await bringUpOperator(stage, cluster);
    up.operator = operator;
    return `process ${operator.pid}, its caches are in sync`;
  });
  return pushed;
}

async function play(stage: Stage): Promise<void> {
  const pushed = await startUp(stage);
  const { cluster, operator } = up;
  if (!cluster || !operator) throw new Error('there is no operator');
  const address = url ?? `${cluster.info.git.httpUrl}/${SOURCE}.git`;
  await stage.step('Apply a MarketplaceSource', () => applySource(stage, operator, address));
  let before: SkillView[] = [];
  await stage.step('Watch the Skills turn Ready', async () => {
    const { views, summary } = await watchSkills(stage, operator);
    before = views;
    if (pushed) checkExamples(views);
    return summary;
  });
  await stage.step('Look into the bucket', () => showBucket(stage, operator, before));
  if (pushed) {
    const given: Repairable = { stage, operator, ...pushed, before };
    await stage.step('Push a commit that breaks one skill', () => breakSkill(given));
    await stage.step('Push the repair', () => mendSkill(given));
    await stage.step('Build and register two skills that bring their own image', () => showImages(stage));
  }
  limits(screen, before);
}

/** The same path with the chart on a node, and what comes after: upgrade, fail-over, uninstall. */
async function playChart(stage: Stage): Promise<void> {
  await stage.step('Start a cluster with a node, and make the image of the operator', async () => {
    screen.say(
      'on addresses of this machine alone; the first run on a machine makes the parts, which takes some minutes',
    );
    up.chart = await bringUpChart(stage);
    return `Kubernetes ${await kubernetesVersion(up.chart.info)} with node ${up.chart.node.name}`;
  });
  const { chart } = up;
  if (!chart) throw new Error('there is no cluster');
  const values = demoValues(chart);
  const operator = handsOf(chart);
  let pushed: Pushed | undefined;
  let before: SkillView[] = [];
  await stage.step('Push examples/marketplace to the Git server', async () => {
    pushed = await pushExamples(chart.info);
    return pushed.summary;
  });
  await stage.step('Install the chart', () => showInstall(stage, chart, values));
  await stage.step('Test the release', () => showTest(stage, chart));
  const address = `${chart.info.git.httpUrl}/${SOURCE}.git`;
  await stage.step('Apply a MarketplaceSource', () => applySource(stage, operator, address));
  await stage.step('Watch the Skills turn Ready', async () => {
    const { views, summary } = await watchSkills(stage, operator);
    before = views;
    checkExamples(views);
    return summary;
  });
  await stage.step('Look into the bucket', () => showBucket(stage, operator, before));
  await stage.step('Upgrade the release', () => showUpgrade(stage, chart, values, before));
  await stage.step('Delete the pod that works', () => showFailover(stage, chart));
  if (pushed) {
    const given: Repairable = { stage, operator, ...pushed, before };
    await stage.step('Push a commit that breaks one skill, to the pod that took over', () => breakSkill(given));
    await stage.step('Push the repair', () => mendSkill(given));
  }
  if (!keep) await stage.step('Uninstall the release', () => showUninstall(stage, chart));
}

/** Says why a step failed, and what the operator had to say. */
async function tellFailure(error: unknown): Promise<void> {
  screen.say(`${screen.paint('red', '✗')} ${screen.paint('bold', 'this step did not come true')}`);
  screen.tell(error instanceof Error ? error.message : String(error), undefined, 2);
  const logs = up.chart ? await logsOfPods(up.chart).catch(() => []) : (up.operator?.logs() ?? []);
  const lines = logs.filter(({ level }) => level === 'warn' || level === 'error');
  if (lines.length === 0) return;
  screen.say("The operator's last warnings:");
  for (const line of lines.slice(-LOG_LINES)) screen.tell(JSON.stringify(line), 'dim', 2);
}

async function run(stage: Stage): Promise<number> {
  let code: number = EXIT.done;
  try {
    await (withChart ? playChart(stage) : play(stage));
  } catch (error) {
    if (stopping.signal.aborted) return EXIT.stopped;
    await tellFailure(error);
    code = EXIT.failed;
  }
  const info = up.chart?.info ?? up.cluster?.info;
  if (keep && info && !stopping.signal.aborted) {
    invitation(screen, { info, bucket: up.chart?.bucket ?? BUCKET, url });
    await once(stopping.signal, 'abort');
  }
  return code;
}

/** Why the demo cannot do what it is asked for, before anything is started. */
async function obstacleOf(): Promise<string | undefined> {
  if (!withChart) return url === undefined ? undefined : urlObstacle(url);
  if (url !== undefined) return 'CHART=1 takes no URL: its pods reach this machine alone; leave one of the two out';
  const why = await whyNoNode({ kubeconfig: '', signal: stopping.signal });
  return why === undefined
    ? undefined
    : `the chart needs a node to run on: ${why}; make demo without CHART=1 needs none`;
}

/** Number of steps. */
function steps(): number {
  if (withChart) return keep ? 11 : 12;
  return url === undefined ? 9 : 5;
}

/** The whole demo; resolves with the exit code. */
async function main(): Promise<number> {
  const obstacle = await obstacleOf();
  if (obstacle !== undefined) {
    screen.print(`${screen.paint('red', '✗')} ${obstacle}`);
    return EXIT.failed;
  }
  welcome(screen, url);
  const { stage, cleanUp } = createStage({ screen, signal: stopping.signal, url }, steps());
  const code = await run(stage);
  screen.print('', screen.paint('dim', 'Cleaning up …'));
  await cleanUp();
  const took = duration(performance.now() - began);
  if (code === EXIT.done)
    screen.print(`${screen.paint('green', '✓')} Everything is stopped and removed. The demo took ${took}.`);
  else if (code === EXIT.failed)
    screen.print(`${screen.paint('red', '✗')} The demo failed. Everything is stopped and removed.`);
  else screen.print('Stopped. Everything is removed.');
  return code;
}

process.exitCode = await main();
