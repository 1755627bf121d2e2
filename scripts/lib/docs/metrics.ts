import { METRICS } from '../../../src/base/metrics.catalogue.ts';

/** docs/guides/metrics.md from the catalogue. */

const HEAD = `<!-- Generated from src/base/metrics.catalogue.ts by \`make generate\`. Do not edit. -->

# Metrics

\`/metrics\` on port 8080 (\`--metrics-address\`) has these, and those of the Node process: \`process_*\` and \`nodejs_*\`, of which \`nodejs_eventloop_lag_p99_seconds\` and \`process_resident_memory_bytes\` are the ones to watch.
Every replica has them; only the leader moves those of the controllers. What to alert on is in the chart, see [operations](operations.md#alerts).

- Names are those of controller-runtime and client-go where those have one, so that dashboards for other operators work here.
- No label ever holds the name of an object, an address or a message: the number of series does not depend on what people apply. A value outside of the list is counted as \`other\`.
- A histogram \`x\` comes as \`x_bucket\`, \`x_sum\` and \`x_count\`, from 5 ms to 30 min.
- \`reason\` is one of [all reasons](../errors.md), or \`Aborted\` when nobody wanted the answer any more.
`;

/** More values than a reader wants to see; the text above says what they are. */
const MANY = 12;

function valuesOf(label: string, values: readonly string[] | RegExp): string {
  if (values instanceof RegExp || values.length > MANY) return `\`${label}\``;
  return `\`${label}\`: ${values.join(', ')}`;
}

/** The text of the page. */
export function metricsPage(): string {
  const rows = Object.entries(METRICS).map(([name, { type, help, labels }]) => {
    const cells = Object.entries(labels as Record<string, readonly string[] | RegExp>);
    const text = cells.map(([label, values]) => valuesOf(label, values)).join('; ');
    return `| \`${name}\` | ${type} | ${help} | ${text} |`;
  });
  return [HEAD, '| metric | type | what | labels |', '|---|---|---|---|', ...rows, ''].join('\n');
}
