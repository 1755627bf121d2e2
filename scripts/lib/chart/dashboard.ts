/** The Grafana dashboard of the chart, from one table of panels. */

interface Panel {
  title: string;
  unit: string;
  /** Legend → query. */
  queries: Readonly<Record<string, string>>;
}

const BY = 'job="$job", namespace="$namespace"';

const PANELS: readonly Panel[] = [
  {
    title: 'Passes per second',
    unit: 'ops',
    queries: {
      '{{controller}} {{result}}': `sum by (controller, result) (rate(controller_runtime_reconcile_total{${BY}}[5m]))`,
    },
  },
  {
    title: 'Duration of a pass, 95th percentile',
    unit: 's',
    queries: {
      '{{controller}}': `histogram_quantile(0.95, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{${BY}}[5m])))`,
    },
  },
  { title: 'Keys that wait', unit: 'short', queries: { '{{name}}': `sum by (name) (workqueue_depth{${BY}})` } },
  {
    title: 'Requests to the Kubernetes API',
    unit: 'reqps',
    queries: { '{{method}} {{code}}': `sum by (method, code) (rate(rest_client_requests_total{${BY}}[5m]))` },
  },
  {
    title: 'Git operations',
    unit: 'ops',
    queries: { '{{operation}}': `sum by (operation) (rate(skill_operator_git_requests_total{${BY}}[5m]))` },
  },
  {
    title: 'Requests to the S3 store',
    unit: 'reqps',
    queries: { '{{operation}}': `sum by (operation) (rate(skill_operator_store_requests_total{${BY}}[5m]))` },
  },
  {
    title: 'Heal, sweep and ledger',
    unit: 'short',
    queries: { '{{action}}': `sum by (action) (increase(skill_operator_upkeep_total{${BY}}[1h]))` },
  },
  {
    title: 'Webhook deliveries',
    unit: 'ops',
    queries: {
      '{{host}} {{result}}': `sum by (host, result) (rate(skill_operator_webhook_deliveries_total{${BY}}[5m]))`,
    },
  },
  {
    title: 'Waits for a person',
    unit: 'short',
    queries: { '{{block}}': `max by (block) (skill_operator_blocked{${BY}})` },
  },
  {
    title: 'Memory',
    unit: 'bytes',
    queries: {
      '{{pod}} resident': `max by (pod) (process_resident_memory_bytes{${BY}})`,
      '{{pod}} heap': `max by (pod) (nodejs_heap_size_used_bytes{${BY}})`,
    },
  },
  {
    title: 'CPU',
    unit: 'percentunit',
    queries: { '{{pod}}': `sum by (pod) (rate(process_cpu_seconds_total{${BY}}[5m]))` },
  },
  {
    title: 'Event loop delay, 99th percentile',
    unit: 's',
    queries: { '{{pod}}': `max by (pod) (nodejs_eventloop_lag_p99_seconds{${BY}})` },
  },
];

const WIDTH = 12;
const HEIGHT = 8;
// A variable of Grafana, chosen at the head of the dashboard.
// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana fills it in.
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };

const panelOf = ({ title, unit, queries }: Panel, index: number) => ({
  id: index + 1,
  title,
  type: 'timeseries',
  datasource: DATASOURCE,
  gridPos: { x: (index % 2) * WIDTH, y: Math.floor(index / 2) * HEIGHT, w: WIDTH, h: HEIGHT },
  fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
  options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } },
  targets: Object.entries(queries).map(([legendFormat, expr], at) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + at),
    datasource: DATASOURCE,
    expr,
    legendFormat,
  })),
});

const variable = (name: string, label: string, query: string) => ({
  name,
  label,
  type: 'query',
  datasource: DATASOURCE,
  query: { query, refId: name },
  refresh: 2,
  sort: 1,
});

/** The text of dashboard.json. */
export function dashboard(): string {
  const json = {
    uid: 'skill-operator',
    title: 'skill-operator',
    tags: ['skill-operator'],
    schemaVersion: 39,
    timezone: 'browser',
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
        variable('namespace', 'Namespace', 'label_values(controller_runtime_reconcile_total, namespace)'),
        variable('job', 'Job', 'label_values(controller_runtime_reconcile_total{namespace="$namespace"}, job)'),
      ],
    },
    panels: PANELS.map(panelOf),
  };
  return `${JSON.stringify(json, undefined, 2)}\n`;
}
