/** The values of one scrape. */
export interface Samples {
  /** Sum of all samples of that name whose labels contain the given ones; 0 when there is none. */
  value(name: string, labels?: Record<string, string>): number;
}

interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

function sampleOf(line: string): Sample | undefined {
  const [, name, inside = '', value] = /^([\w:]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (name === undefined) return undefined;
  const labels = [...inside.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text]);
  return { name, labels: Object.fromEntries(labels), value: Number(value) };
}

/** Reads the Prometheus text format. */
export function parseSamples(text: string): Samples {
  const samples = text
    .split('\n')
    .map(sampleOf)
    .filter((sample) => sample !== undefined);
  return {
    value: (name, labels = {}) =>
      samples
        .filter((sample) => sample.name === name)
        .filter((sample) => Object.entries(labels).every(([key, text]) => sample.labels[key] === text))
        .reduce((sum, sample) => sum + sample.value, 0),
  };
}
