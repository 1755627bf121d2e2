/** The Grafana dashboard of the chart, from one table of panels. */

interface Panel {
  title: string;
  unit: string;
  /** Legend → query. */
  queries: Readonly<Record<string, string>>;
}

const BY = 'job="$job", namespace="$namespace"';

/** The 95th percentile of a histogram by one label. */
const p95 = (metric: string, by: string) =>
  `histogram_quantile(0.95, sum by (${by}, le) (rate(${metric}_bucket{${BY}}[5m])))`;

const PANELS: readonly Panel[] = [
  {
    title: 'Skills by state',
    unit: 'short',
    queries: { '{{state}}': `max by (state) (skill_operator_skills{${BY}})` },
  },
  {
    title: 'Sources by state',
    unit: 'short',
    queries: { '{{state}}': `max by (state) (skill_operator_sources{${BY}})` },
  },
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
      '{{controller}}': p95('controller_runtime_reconcile_time_seconds', 'controller'),
    },
  },
  { title: 'Keys that wait', unit: 'short', queries: { '{{name}}': `sum by (name) (workqueue_depth{${BY}})` } },
  {
    title: 'Wait of a key for a worker, 95th percentile',
    unit: 's',
    queries: { '{{name}}': p95('workqueue_queue_duration_seconds', 'name') },
  },
  {
    title: 'Oldest work under way',
    unit: 's',
    queries: { '{{name}}': `max by (name) (workqueue_longest_running_processor_seconds{${BY}})` },
  },
  {
    title: 'Leader',
    unit: 'short',
    queries: { '{{pod}}': `max by (pod) (leader_election_master_status{${BY}})` },
  },
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
    title: 'Git: errors and duration',
    unit: 'short',
    queries: {
      '{{reason}} per second': `sum by (reason) (rate(skill_operator_git_errors_total{${BY}}[5m]))`,
      '{{operation}} p95 in s': p95('skill_operator_git_request_duration_seconds', 'operation'),
    },
  },
  {
    title: 'Store: errors and duration',
    unit: 'short',
    queries: {
      '{{reason}} per second': `sum by (reason) (rate(skill_operator_store_errors_total{${BY}}[5m]))`,
      '{{operation}} p95 in s': p95('skill_operator_store_request_duration_seconds', 'operation'),
    },
  },
  {
    title: 'Engines: steps and errors',
    unit: 'ops',
    queries: {
      '{{engine}} {{operation}}': `sum by (engine, operation) (rate(skill_operator_engine_requests_total{${BY}}[5m]))`,
      '{{engine}} {{reason}}': `sum by (engine, reason) (rate(skill_operator_engine_errors_total{${BY}}[5m]))`,
    },
  },
  {
    title: 'Builds',
    unit: 'short',
    queries: {
      waiting: `max(skill_operator_builds_waiting{${BY}})`,
      running: `max(skill_operator_builds_running{${BY}})`,
      '{{result}} per hour': `sum by (result) (increase(skill_operator_builds_total{${BY}}[1h]))`,
    },
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
