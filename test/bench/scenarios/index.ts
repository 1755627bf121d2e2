import { type Market, pushMarket } from '../market.ts';
import type { Row } from '../rows.ts';
import { type Bench, Stage } from '../stage.ts';
import { bringUp, type Cold, costRows, floorOf, timeRows } from './cold.ts';
import { manySources } from './sources.ts';
import { change, idle, noop, restart } from './steady.ts';

/** Everything that `--only` can name, with what it measures. */
export const SCENARIOS = {
  cold: '1000 skills of one repository, from the apply of the source until all are Ready, and the floor',
  restart: 'a restart with 1000 Ready skills',
  change: 'one changed skill of 1000, thirty times',
  'no-op': 'a pass over 1000 skills that finds nothing new',
  idle: 'a minute in which nobody does anything',
  sources: '200 sources of five skills each, cold, and their floor',
  large: '10,000 skills: cold and one change (only with --large)',
} as const;

/** Name of a scenario. */
export type ScenarioName = keyof typeof SCENARIOS;

const SKILLS = 1000;
const MANY_SKILLS = 10_000;
const REPETITIONS = 30;
const RSS_MIB = 200;
const RSS_MANY_MIB = 300;

/** The scenarios on one marketplace of 1000 skills; those that are not wanted but needed run without rows. */
async function thousand(bench: Bench, wants: (name: ScenarioName) => boolean): Promise<Cold> {
  const emit = (rows: Row[]) => rows.forEach(bench.emit);
  bench.say(`pushing ${SKILLS} skills`);
  const market = await pushMarket(bench, 'skill', SKILLS);
  await using stage = await Stage.open(bench);
  bench.say(`bringing up ${SKILLS} skills`);
  const cold = await bringUp(stage, market);
  if (wants('cold')) {
    emit(costRows('cold 1000', cold, { rssMiB: RSS_MIB, sources: 1 }));
    await stage.quiet();
    await stage.stop();
    bench.say('measuring the floor');
    emit(timeRows('cold 1000', cold, await floorOf(stage, market, cold)));
  } else {
    await stage.quiet();
    await stage.stop();
  }
  if ((['restart', 'change', 'no-op', 'idle'] as const).some(wants)) await steady(stage, market, wants);
  await stage.clear();
  return cold;
}

async function steady(stage: Stage, market: Market, wants: (name: ScenarioName) => boolean): Promise<void> {
  const { bench } = stage;
  const emit = (rows: Row[]) => rows.forEach(bench.emit);
  bench.say('restarting');
  const restarted = await restart(stage, market);
  if (wants('restart')) emit(restarted);
  if (wants('change')) {
    bench.say(`changing one skill, ${REPETITIONS} times`);
    emit(await change(stage, market, REPETITIONS));
  }
  if (wants('no-op')) {
    bench.say('waiting for a pass that finds nothing');
    emit(await noop(stage));
  }
  if (wants('idle')) {
    bench.say('idling for a minute');
    emit(await idle(stage));
  }
  await stage.stop();
}

/** Ten thousand skills; `base` is the cold run of a thousand in the same run. */
async function large(bench: Bench, base: Cold): Promise<void> {
  const scenario = 'cold 10000';
  bench.say(`pushing ${MANY_SKILLS} skills`);
  const market = await pushMarket(bench, 'many', MANY_SKILLS);
  await using stage = await Stage.open(bench);
  bench.say(`bringing up ${MANY_SKILLS} skills`);
  const cold = await bringUp(stage, market);
  const times = cold.seconds / base.seconds;
  bench.emit({ scenario, measure: 'all Ready after', value: cold.seconds, unit: 's', target: 12 * base.seconds });
  bench.emit({ scenario, measure: 'times the cold 1000', value: times, unit: 'x', target: 12 });
  costRows(scenario, cold, { rssMiB: RSS_MANY_MIB, sources: 1 }).forEach(bench.emit);
  await stage.quiet();
  bench.say(`changing one skill, ${REPETITIONS} times`);
  (await change(stage, market, REPETITIONS, 'change of 10000')).forEach(bench.emit);
  await stage.stop();
}

/** Runs what is wanted; every row goes to `bench.emit` as soon as it is known. */
export async function runScenarios(bench: Bench, wants: (name: ScenarioName) => boolean): Promise<void> {
  const onThousand = (['cold', 'restart', 'change', 'no-op', 'idle', 'large'] as const).some(wants);
  const base = onThousand ? await thousand(bench, wants) : undefined;
  if (wants('sources')) (await manySources(bench)).forEach(bench.emit);
  if (wants('large') && base) await large(bench, base);
}
