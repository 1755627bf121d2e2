import type { BuildSettings } from './settings.ts';

/** A build that has not started. */
export interface WaitingBuild {
  /** `namespace/name` of the Skill. */
  key: string;
  namespace: string;
  /** When it began to wait, milliseconds since the epoch. */
  since: number;
}

/** Who builds and who wants to. */
export interface QueueInput {
  waiting: readonly WaitingBuild[];
  running: readonly { key: string; namespace: string }[];
  /** When each namespace last started a build, in any unit that grows; absent: never. Makes the turns go on from pass to pass. */
  lastStart: ReadonlyMap<string, number>;
  limits: BuildSettings['limits'];
}

/** Who starts now, and what the others are told. */
export interface QueuePlan {
  /** Keys that may start now, in order. */
  start: string[];
  /** Place of every other key in the order of starts, from 1, with the sentence for its status. */
  waiting: Map<string, { position: number; message: string }>;
}

/** Longest waiting first; the key makes the order total. */
const byAge = (a: WaitingBuild, b: WaitingBuild): number => a.since - b.since || (a.key < b.key ? -1 : 1);

/** First come, first served within a namespace; the namespaces take turns, the one that started longest ago comes first. */
function inTurns({ waiting, lastStart }: QueueInput): WaitingBuild[] {
  const lanes = new Map<string, WaitingBuild[]>();
  for (const build of [...waiting].sort(byAge)) {
    const lane = lanes.get(build.namespace);
    if (lane) lane.push(build);
    else lanes.set(build.namespace, [build]);
  }
  const never = Number.NEGATIVE_INFINITY;
  const started = (lane: WaitingBuild[]) => lastStart.get((lane[0] as WaitingBuild).namespace) ?? never;
  const order = [...lanes.values()].sort((a, b) => {
    const [x, y] = [started(a), started(b)];
    return x === y ? byAge(a[0] as WaitingBuild, b[0] as WaitingBuild) : x - y;
  });
  const turns: WaitingBuild[] = [];
  for (let round = 0; turns.length < waiting.length; round++) {
    for (const lane of order) if (lane[round]) turns.push(lane[round] as WaitingBuild);
  }
  return turns;
}

/**
 * Which builds start now under the limit of the installation and that of each namespace.
 * Pure. A namespace at its limit is passed over, so it never holds up another; a build that runs already is not started twice.
 */
export function planQueue(input: QueueInput): QueuePlan {
  const { running, limits } = input;
  const busy = new Map<string, number>();
  const count = (namespace: string) => busy.set(namespace, (busy.get(namespace) ?? 0) + 1);
  for (const { namespace } of running) count(namespace);
  const active = new Set(running.map(({ key }) => key));
  const plan: QueuePlan = { start: [], waiting: new Map() };
  const left: WaitingBuild[] = [];
  for (const build of inTurns(input)) {
    if (active.has(build.key)) continue;
    const free =
      active.size < Math.max(limits.total, 1) && (busy.get(build.namespace) ?? 0) < Math.max(limits.perNamespace, 1);
    if (!free) {
      left.push(build);
      continue;
    }
    active.add(build.key);
    count(build.namespace);
    plan.start.push(build.key);
  }
  for (const [i, { key, namespace }] of left.entries()) {
    const position = i + 1;
    const own = (busy.get(namespace) ?? 0) >= limits.perNamespace;
    const limit = own
      ? `namespace ${namespace} builds ${busy.get(namespace)} images, its limit is ${limits.perNamespace}`
      : `${active.size} images are being built, the limit is ${limits.total}`;
    plan.waiting.set(key, {
      position,
      message: `waits for a build slot, place ${position} of ${left.length}: ${limit}; it starts by itself`,
    });
  }
  return plan;
}
