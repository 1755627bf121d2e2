import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { boundedLabel, type LabelsOf, METRICS, type MetricName, type MetricOf } from './metrics.catalogue.ts';

/** Every metric of the operator, by the catalogue. A label value that the catalogue does not know is counted as `other`. */
export interface Metrics {
  /** The text exposition of all metrics. */
  render(): Promise<string>;
  /** Adds to a counter; 1 by default. */
  add<N extends MetricOf<'counter'>>(name: N, labels: LabelsOf<N>, by?: number): void;
  /** Takes over the totals of a counter that is kept elsewhere, by the value of its one label. */
  totals<N extends MetricOf<'counter'>>(
    name: N,
    label: keyof LabelsOf<N>,
    totals: Readonly<Record<string, number>>,
  ): void;
  set<N extends MetricOf<'gauge'>>(name: N, labels: LabelsOf<N>, value: number): void;
  /** One duration, in seconds. */
  observe<N extends MetricOf<'histogram'>>(name: N, labels: LabelsOf<N>, seconds: number): void;
  /** What heal, sweep and ledger found or did. */
  upkeep(action: (typeof METRICS)['skill_operator_upkeep_total']['labels']['action'][number], count: number): void;
  /** One delivery at the webhook receiver. */
  webhookDelivery(host: string, result: WebhookResult): void;
  /** Whether a block stands that a person has to lift. */
  blocked(block: string, stands: boolean): void;
}

/** How a webhook delivery ended; `joined` one belongs to the pass that an earlier one asked for. */
type WebhookResult =
  | 'accepted'
  | 'joined'
  | 'ping'
  | 'ignored'
  | 'refused'
  | 'tooLarge'
  | 'late'
  | 'gone'
  | 'busy'
  | 'error';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];

type Instrument = Counter | Gauge | Histogram;

function instruments(registry: Registry): ReadonlyMap<MetricName, Instrument> {
  const make = { counter: Counter, gauge: Gauge, histogram: Histogram };
  return new Map(
    Object.entries(METRICS).map(([name, { type, help, labels }]) => {
      const common = { name, help, labelNames: Object.keys(labels), registers: [registry] };
      const instrument = new make[type](type === 'histogram' ? { ...common, buckets: SECONDS } : common);
      return [name as MetricName, instrument];
    }),
  );
}

/** The labels as they may be counted. */
function bounded(name: MetricName, given: Readonly<Record<string, string>>): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [label, values] of Object.entries(METRICS[name].labels)) {
    labels[label] = boundedLabel(values, given[label] ?? '');
  }
  return labels;
}

/** A registry of its own, so that two operators in one process (tests) never share a counter. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const all = instruments(registry);
  const counter = (name: MetricName) => all.get(name) as Counter;
  const add: Metrics['add'] = (name, labels, by = 1) => counter(name).inc(bounded(name, labels), by);
  const set: Metrics['set'] = (name, labels, value) => (all.get(name) as Gauge).set(bounded(name, labels), value);
  return {
    add,
    set,
    render: () => registry.metrics(),
    totals: (name, label, totals) => {
      counter(name).reset();
      for (const [value, total] of Object.entries(totals)) {
        counter(name).inc(bounded(name, { [label]: value }), total);
      }
    },
    observe: (name, labels, seconds) => (all.get(name) as Histogram).observe(bounded(name, labels), seconds),
    upkeep: (action, count) => add('skill_operator_upkeep_total', { action }, count),
    blocked: (block, stands) => set('skill_operator_blocked', { block }, stands ? 1 : 0),
    webhookDelivery: (host, result) =>
      add('skill_operator_webhook_deliveries_total', { host, result: result.toLowerCase() }),
  };
}
