import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  timeDeltas: number[];
}

const TOP = 20;

/** Self time by function in microseconds, largest first; what the engine did by itself has names in brackets. */
function selfTimes({ nodes, samples, timeDeltas }: CpuProfile): [name: string, microseconds: number][] {
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => [
      id,
      `${functionName || '(anonymous)'}  ${url.slice(url.lastIndexOf('/') + 1)}${url ? `:${lineNumber + 1}` : ''}`,
    ]),
  );
  const sums = new Map<string, number>();
  for (const [i, id] of samples.entries()) {
    const name = names.get(id) ?? '(unknown)';
    sums.set(name, (sums.get(name) ?? 0) + (timeDeltas[i] ?? 0));
  }
  return [...sums].sort(([, a], [, b]) => b - a);
}

/** Lines on the main thread's profile that process `pid` left in `dir`: its file and the twenty functions with the most self time. */
export function describeProfile(dir: string, pid: number): string[] {
  const name = readdirSync(dir).find((file) => file.includes(`.${pid}.0.`) && file.endsWith('.cpuprofile'));
  if (name === undefined) return [`no profile of process ${pid} in ${dir}`];
  const times = selfTimes(JSON.parse(readFileSync(join(dir, name), 'utf8')) as CpuProfile);
  const busy = times.filter(([label]) => !label.startsWith('(idle)')).reduce((sum, [, time]) => sum + time, 0);
  const top = times
    .filter(([label]) => !label.startsWith('(idle)'))
    .slice(0, TOP)
    .map(
      ([label, time]) =>
        `${((100 * time) / busy).toFixed(1).padStart(6)} %  ${(time / 1000).toFixed(0).padStart(6)} ms  ${label}`,
    );
  return [`profile ${join(dir, name)}: ${(busy / 1_000_000).toFixed(2)} s busy`, ...top];
}
