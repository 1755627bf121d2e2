import { setTimeout as delay } from 'node:timers/promises';
import { skillObjectName } from '../../../src/api/names.ts';
import { skillWrites } from '../audit-tail.ts';
import { type Market, maker, type PushedSkill } from '../market.ts';
import { figuresOf } from '../procstat.ts';
import { growth, loopDelayMs, requestsBetween } from '../readings.ts';
import type { Row } from '../rows.ts';
import type { Stage } from '../stage.ts';
import { percentile } from '../stats.ts';
import { SOURCE } from './cold.ts';

const CHANGE_MS = 60_000;
const IDLE_MS = 60_000;
const CHANGE_BYTES = 4096;
/** Size of the pages of a list after the first, and of the first, as src/kube has them. */
const PAGE = 250;
const FIRST_PAGE = 100;

const objectNameOf = ({ plugin, skill }: PushedSkill): string => skillObjectName(SOURCE, plugin, skill);

let revision = 1;

/** Pushes a change of one skill, asks for a pass, and waits for the status of that Skill: milliseconds from request to answer. */
async function changeOnce(stage: Stage, { repository }: Market, skill: PushedSkill): Promise<number> {
  const { bench, operator } = stage;
  const content = maker.skillMd(skill.skill, ++revision, CHANGE_BYTES);
  const commit = await repository.commit({ [`${skill.path}/SKILL.md`]: content });
  const mark = bench.audit.mark();
  const began = await stage.request(SOURCE, commit);
  const at = await stage.statusOf(objectNameOf(skill), mark, CHANGE_MS);
  const object = await operator.k8s.get(operator.skill(objectNameOf(skill)));
  if (object?.status?.served?.commit !== commit) {
    throw new Error(`${objectNameOf(skill)} does not serve ${commit}: ${JSON.stringify(object?.status)}`);
  }
  return at - began;
}

/** One changed skill after the other; the first, which may have to clone, is a row of its own. */
export async function change(stage: Stage, market: Market, repetitions: number, scenario = 'change'): Promise<Row[]> {
  const { bench } = stage;
  const count = market.skills.length;
  const skills = Array.from({ length: repetitions }, (_, i) => market.skills[Math.floor((i * count) / repetitions)]);
  const spare = market.skills.at(-1);
  if (!spare) throw new Error('the market is empty');
  const first = await changeOnce(stage, market, spare);
  await stage.quiet();
  const before = await stage.reading();
  const mark = bench.audit.mark();
  const took: number[] = [];
  for (const skill of skills) if (skill) took.push(await changeOnce(stage, market, skill));
  const after = await stage.reading();
  const writes = stage.writesSince(mark);
  const forSkills = skillWrites(writes, new Set(market.skills.map(objectNameOf)));
  const asked = requestsBetween(before, after);
  const each = (total: number) => total / took.length;
  return [
    { scenario, measure: 'first change, which may have to clone', value: first, unit: 'ms' },
    { scenario, measure: `Ready after the request, p50 of ${took.length}`, value: percentile(took, 0.5), unit: 'ms' },
    { scenario, measure: 'Ready after the request, p95', value: percentile(took, 0.95), unit: 'ms', target: 500 },
    { scenario, measure: 'API writes to Skills per change', value: each(forSkills), unit: '', target: 2 },
    {
      scenario,
      measure: 'API writes to the source per change',
      value: each(writes.length - forSkills),
      unit: '',
      // Its status, an event, and at most two writes of its counts.
      target: 4,
    },
    { scenario, measure: 'S3 PUTs per change', value: each(asked.puts), unit: '', target: 2 },
    { scenario, measure: 'Git requests per change', value: each(asked.git), unit: '', target: 2 },
    { scenario, measure: 'operator CPU per change', value: each(1000 * (after.cpu - before.cpu)), unit: 'ms' },
    // The longest slice that the design allows (I8).
    { scenario, measure: 'longest event-loop delay', value: loopDelayMs(after), unit: 'ms', target: 20 },
  ];
}

/** A pass that finds nothing new. It is brought about by a short interval, since a request asks for a written answer. */
export async function noop(stage: Stage): Promise<Row[]> {
  const { bench, operator } = stage;
  const scenario = 'no-op resync';
  const setInterval = (interval: string | null) => operator.k8s.patch(operator.source(SOURCE), { spec: { interval } });
  await setInterval('10s');
  await stage.quiet();
  const before = await stage.reading();
  const mark = bench.audit.mark();
  const passes = async () => growth(before, await stage.reading(), PASSES, { controller: 'source' });
  while ((await passes()) < 1) {
    await operator.check();
    await delay(500);
  }
  // What a pass set off comes within moments.
  await delay(1000);
  const after = await stage.reading();
  const ended = await passes();
  const asked = requestsBetween(before, after);
  const writes = stage.writesSince(mark).length;
  await setInterval(null);
  await stage.quiet();
  return [
    { scenario, measure: 'API writes', value: writes, unit: '', target: 0 },
    { scenario, measure: 'S3 requests', value: asked.store, unit: '', target: 0 },
    { scenario, measure: 'Git requests per pass', value: asked.git / ended, unit: '', target: 1 },
    {
      scenario,
      measure: 'duration of the pass',
      value:
        (1000 * growth(before, after, 'controller_runtime_reconcile_time_seconds_sum', { controller: 'source' })) /
        ended,
      unit: 'ms',
    },
  ];
}

const PASSES = 'controller_runtime_reconcile_time_seconds_count';

/** A minute in which nobody does anything. */
export async function idle(stage: Stage): Promise<Row[]> {
  const { bench, operator } = stage;
  const scenario = 'idle minute';
  await stage.quiet();
  const before = await stage.reading();
  const mark = bench.audit.mark();
  const rss: number[] = [];
  const end = performance.now() + IDLE_MS;
  while (performance.now() < end) {
    await delay(5_000);
    await operator.check();
    rss.push(figuresOf(operator.pid).rss);
  }
  const after = await stage.reading();
  const half = rss.length / 2;
  const drift = percentile(rss.slice(half), 0.5) - percentile(rss.slice(0, half), 0.5);
  const seconds = IDLE_MS / 1000;
  return [
    {
      scenario,
      measure: 'API requests per second',
      value: requestsBetween(before, after).api / seconds,
      unit: '',
      target: 1,
    },
    { scenario, measure: 'API writes', value: stage.writesSince(mark).length, unit: '', target: 0 },
    { scenario, measure: 'S3 requests', value: requestsBetween(before, after).store, unit: '', target: 0 },
    { scenario, measure: 'RSS', value: after.rss, unit: 'MiB' },
    // Flat: medians of the two halves; the collector moves it by some MiB.
    { scenario, measure: 'RSS growth between the halves', value: drift, unit: 'MiB', target: 5 },
    { scenario, measure: 'operator CPU', value: after.cpu - before.cpu, unit: 's' },
  ];
}

const pages = (count: number): number => 1 + Math.max(0, Math.ceil((count - FIRST_PAGE) / PAGE));

/** Starts the stopped operator over a marketplace that is Ready and waits until it has looked at everything. */
export async function restart(stage: Stage, market: Market): Promise<Row[]> {
  const { bench, operator } = stage;
  const scenario = 'restart';
  const count = market.skills.length;
  const mark = bench.audit.mark();
  const began = performance.now();
  await operator.start();
  const synced = performance.now() - began;
  const looked = async () => {
    const { samples } = await stage.reading();
    return (
      samples.value(PASSES, { controller: 'skill' }) >= count && samples.value(PASSES, { controller: 'source' }) >= 1
    );
  };
  while (!(await looked())) {
    await operator.check();
    await delay(100);
  }
  const done = performance.now() - began;
  await stage.quiet();
  const { samples, cpu, peakRss } = await stage.reading();
  const lists = samples.value('rest_client_requests_total', { method: 'list' });
  return [
    { scenario, measure: 'caches in sync after', value: synced, unit: 'ms' },
    { scenario, measure: 'every object looked at after', value: done, unit: 'ms' },
    { scenario, measure: 'API writes', value: stage.writesSince(mark).length, unit: '', target: 0 },
    {
      scenario,
      measure: 'S3 PUTs',
      value: samples.value('skill_operator_store_requests_total', { operation: 'put' }),
      unit: '',
      target: 0,
    },
    // One list of either kind, in pages.
    { scenario, measure: 'pages of lists', value: lists, unit: '', target: pages(count) + 1 },
    {
      scenario,
      measure: 'Git requests',
      value: samples.value('skill_operator_git_requests_total'),
      unit: '',
      target: 1,
    },
    { scenario, measure: 'operator CPU', value: cpu, unit: 's' },
    { scenario, measure: 'peak RSS', value: peakRss, unit: 'MiB' },
  ];
}
