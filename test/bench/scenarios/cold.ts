import type { K8sObject } from '../../support/k8s.ts';
import { gitSource, publicUrl } from '../../support/market.ts';
import { type AuditedWrite, byResource, skillWrites } from '../audit-tail.ts';
import { type Floor, measureFloor, writesOf } from '../floor.ts';
import type { Market } from '../market.ts';
import { loopDelayMs, type Reading, requestsBetween } from '../readings.ts';
import type { Row } from '../rows.ts';
import type { Stage } from '../stage.ts';

/** Name of the one source of the large scenarios. */
export const SOURCE = 'market';

/** Sources brought up from nothing, and what it took. */
export interface Cold {
  skills: K8sObject[];
  /** From just before the apply of the source to the answer to the last status write. */
  seconds: number;
  writes: AuditedWrite[];
  before: Reading;
  after: Reading;
}

/** Deadline for one Skill, with room for a busy machine. */
const MS_PER_SKILL = 120;
const START_MS = 60_000;

/** Applies a source over the market and waits until all its Skills are Ready. */
export async function bringUp(stage: Stage, market: Market): Promise<Cold> {
  const { bench, operator } = stage;
  const count = market.skills.length;
  const before = await stage.reading();
  const mark = bench.audit.mark();
  const began = Date.now();
  // The default interval, as most users have it.
  await operator.k8s.apply(gitSource(operator, SOURCE, market.repository, { interval: undefined }));
  const { skills, at } = await stage.allReady(mark, count, START_MS + count * MS_PER_SKILL);
  const after = await stage.reading();
  return { skills, seconds: (at - began) / 1000, writes: stage.writesSince(mark), before, after };
}

/** The same writes and the same fetch by a bare client; the operator must not run meanwhile. */
export async function floorOf({ bench, operator }: Stage, market: Market, { skills }: Cold): Promise<Floor> {
  const source = await operator.k8s.get(operator.source(SOURCE));
  if (!source) throw new Error(`there is no source ${SOURCE}`);
  const url = publicUrl(operator, market.repository);
  return await measureFloor(bench, { skills, source, bucket: operator.bucket }, [url]);
}

/** The rows of a floor. */
export function floorRows(scenario: string, floor: Floor): Row[] {
  const seconds = (measure: string, value: number): Row => ({ scenario, measure, value, unit: 's' });
  return [
    seconds('floor: applies', floor.applies),
    seconds('floor: status applies', floor.statuses),
    seconds('floor: PUTs', floor.puts),
    seconds('floor: git ls-remote', floor.lsRemotes),
    seconds('floor: git fetch', floor.fetches),
  ];
}

/** Rows of what a cold run cost the API server, the store, Git and this machine. */
export function costRows(scenario: string, cold: Cold, targets: { rssMiB?: number; sources: number }): Row[] {
  const { before, after, writes, seconds } = cold;
  const count = cold.skills.length;
  const asked = requestsBetween(before, after);
  const forSkills = skillWrites(writes, new Set(cold.skills.map(({ metadata }) => metadata.name)));
  return [
    ...Object.entries(byResource(writes)).map(([kind, value]) => ({
      scenario,
      measure: `API writes: ${kind}`,
      value,
      unit: '',
    })),
    { scenario, measure: 'API writes per skill, events included', value: forSkills / count, unit: '', target: 2 },
    {
      scenario,
      measure: 'API writes per source, events included',
      value: (writes.length - forSkills) / targets.sources,
      unit: '',
      // The pass, its event, the first counts, and counts every five seconds after that.
      target: 4 + Math.ceil(seconds / 5),
    },
    { scenario, measure: 'API requests of all kinds', value: asked.api, unit: '' },
    { scenario, measure: 'S3 PUTs per skill', value: asked.puts / count, unit: '', target: 2 },
    { scenario, measure: 'S3 requests of other kinds', value: asked.store - asked.puts, unit: '' },
    { scenario, measure: 'Git requests', value: asked.git, unit: '', target: 2 * targets.sources },
    { scenario, measure: 'operator CPU', value: after.cpu - before.cpu, unit: 's' },
    { scenario, measure: 'CPU of its git processes', value: after.childCpu - before.childCpu, unit: 's' },
    {
      scenario,
      measure: 'peak RSS',
      value: after.peakRss,
      unit: 'MiB',
      ...(targets.rssMiB === undefined ? {} : { target: targets.rssMiB }),
    },
    // Without a target: all cores are busy with the servers, so most of it is waiting for a core.
    { scenario, measure: 'longest event-loop delay', value: loopDelayMs(after), unit: 'ms' },
  ];
}

/** Rows of the time of a cold run against its floor. */
export function timeRows(scenario: string, cold: Cold, floor: Floor): Row[] {
  const all = writesOf(floor) + floor.lsRemotes + floor.fetches;
  return [
    ...floorRows(scenario, floor),
    { scenario, measure: 'all Ready after', value: cold.seconds, unit: 's', target: 2 * all },
    { scenario, measure: 'times the floor', value: cold.seconds / all, unit: 'x', target: 2 },
  ];
}
