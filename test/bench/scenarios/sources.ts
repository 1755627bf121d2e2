import { createRepository } from '../../support/git.ts';
import { gitSource, publicUrl } from '../../support/market.ts';
import { measureFloor, writesOf } from '../floor.ts';
import { maker } from '../market.ts';
import type { Row } from '../rows.ts';
import { type Bench, Stage } from '../stage.ts';
import { pooled } from '../stats.ts';
import { type Cold, costRows, floorRows } from './cold.ts';

const SOURCES = 200;
const SKILLS = 5;
const TIMEOUT_MS = 300_000;
const AT_ONCE = 16;

const NAMES = Array.from({ length: SOURCES }, (_, i) => `source-${String(i).padStart(3, '0')}`);

/** Two hundred repositories of five skills each, all applied at once. */
export async function manySources(bench: Bench): Promise<Row[]> {
  const scenario = `${SOURCES} sources`;
  bench.say(`pushing ${SOURCES} repositories of ${SKILLS} skills`);
  const repositories = new Map<string, Awaited<ReturnType<typeof createRepository>>>();
  await pooled(NAMES, 4, async (name) => {
    const repository = await createRepository(bench.info.git.root, `bench-${name}`);
    const made = Array.from({ length: SKILLS }, (_, i) => maker.make(name, i));
    await repository.commit(Object.assign({}, ...made.map(({ files }) => files)));
    repositories.set(name, repository);
  });
  await using stage = await Stage.open(bench);
  bench.say(`applying ${SOURCES} sources`);
  const cold = await applyAll(stage, repositories);
  const { operator } = stage;
  const source = await operator.k8s.get(operator.source(NAMES[0] ?? ''));
  if (!source) throw new Error('the first source is gone');
  await stage.stop();
  bench.say('measuring the floor');
  const urls = [...repositories.values()].map((repository) => publicUrl(operator, repository));
  const floor = await measureFloor(bench, { skills: cold.skills, source, bucket: operator.bucket }, urls);
  await stage.clear();
  const bound = 2 * writesOf(floor) + floor.fetches;
  return [
    ...floorRows(scenario, floor),
    { scenario, measure: 'all Ready after', value: cold.seconds, unit: 's', target: bound },
    {
      scenario,
      measure: 'times floor and fetches',
      value: cold.seconds / (writesOf(floor) + floor.fetches),
      unit: 'x',
    },
    ...costRows(scenario, cold, { sources: SOURCES }),
  ];
}

async function applyAll(stage: Stage, repositories: ReadonlyMap<string, { name: string }>): Promise<Cold> {
  const { bench, operator } = stage;
  const before = await stage.reading();
  const mark = bench.audit.mark();
  const began = Date.now();
  await pooled([...repositories], AT_ONCE, async ([name, repository]) => {
    await operator.k8s.apply(gitSource(operator, name, repository, { interval: undefined }));
  });
  const { skills, at } = await stage.allReady(mark, SOURCES * SKILLS, TIMEOUT_MS);
  const after = await stage.reading();
  return { skills, seconds: (at - began) / 1000, writes: stage.writesSince(mark), before, after };
}
