import { REASONS } from './reasons.ts';

/** A label's values: a closed set, or the shape of a set that is small by nature. What is in neither becomes `other`. */
type LabelValues = readonly string[] | RegExp;

/** One metric: everything that is registered, documented and tested of it. */
interface Definition {
  type: 'counter' | 'gauge' | 'histogram';
  /** One sentence; also the row in docs/guides/metrics.md. */
  help: string;
  /** No label ever holds the name of an object: the number of series does not grow with what people apply. */
  labels: Readonly<Record<string, LabelValues>>;
}

const CONTROLLERS = ['source', 'counts', 'skill'] as const;
const QUEUE = { name: CONTROLLERS, controller: CONTROLLERS } as const;
const ENGINES = ['cubesandbox', 'e2b'] as const;
const GIT = { operation: ['ls-remote', 'fetch'] } as const;
const STORE = { operation: ['head', 'get', 'put', 'list', 'delete'] } as const;
const ENGINE = {
  engine: ENGINES,
  operation: ['health', 'allocate', 'start', 'poll', 'delete', 'exists', 'resolve', 'list', 'duplicates'],
} as const;
const REASON = { reason: [...Object.keys(REASONS), 'Aborted'] } as const;
const VERBS = ['get', 'list', 'watch', 'create', 'patch', 'delete'] as const;
const WEBHOOK_RESULTS = [
  ...['accepted', 'joined', 'ping', 'ignored', 'refused'],
  ...['toolarge', 'late', 'gone', 'busy', 'error'],
] as const;

/** Every metric of the operator but those of the Node process; names of controller-runtime and client-go where those have one. */
export const METRICS = {
  controller_runtime_reconcile_total: {
    type: 'counter',
    help: 'Finished passes by result.',
    labels: { controller: CONTROLLERS, result: ['success', 'stalled', 'waiting', 'retry', 'panic'] },
  },
  controller_runtime_reconcile_errors_total: {
    type: 'counter',
    help: 'Passes that are tried again with a back-off: results `retry` and `panic`.',
    labels: { controller: CONTROLLERS },
  },
  controller_runtime_reconcile_panics_total: {
    type: 'counter',
    help: 'Passes that met a defect of the operator.',
    labels: { controller: CONTROLLERS },
  },
  controller_runtime_reconcile_time_seconds: {
    type: 'histogram',
    help: 'Duration of a pass.',
    labels: { controller: CONTROLLERS },
  },
  controller_runtime_active_workers: {
    type: 'gauge',
    help: 'Passes under way.',
    labels: { controller: CONTROLLERS },
  },
  controller_runtime_max_concurrent_reconciles: {
    type: 'gauge',
    help: 'Passes that may be under way at once.',
    labels: { controller: CONTROLLERS },
  },
  workqueue_depth: { type: 'gauge', help: 'Keys that could be worked on and wait for a worker.', labels: QUEUE },
  workqueue_adds_total: { type: 'counter', help: 'Keys that became due.', labels: QUEUE },
  workqueue_retries_total: { type: 'counter', help: 'Keys put back after a failure, with a back-off.', labels: QUEUE },
  workqueue_queue_duration_seconds: {
    type: 'histogram',
    help: 'From when a key was due to when a worker took it.',
    labels: QUEUE,
  },
  workqueue_work_duration_seconds: {
    type: 'histogram',
    help: 'From when a worker took a key to when it let go of it.',
    labels: QUEUE,
  },
  workqueue_unfinished_work_seconds: {
    type: 'gauge',
    help: 'Ages of all work under way, summed up; it grows while something is stuck.',
    labels: QUEUE,
  },
  workqueue_longest_running_processor_seconds: {
    type: 'gauge',
    help: 'Age of the oldest work under way.',
    labels: QUEUE,
  },
  rest_client_requests_total: {
    type: 'counter',
    help: 'Requests to the Kubernetes API; code 0: no answer.',
    labels: { method: VERBS, code: /^\d{1,3}$/ },
  },
  rest_client_request_duration_seconds: {
    type: 'histogram',
    help: 'Duration of a request to the Kubernetes API; of a watch, until it was accepted.',
    labels: { verb: VERBS },
  },
  leader_election_master_status: {
    type: 'gauge',
    help: '1 while this process holds the Lease of that name.',
    labels: { name: /^skill-operator(?:-shard-[0-9a-f]{10})?$/ },
  },
  skill_operator_watch_age_seconds: {
    type: 'gauge',
    help: 'Since when the API server has said nothing on a watch; bookmarks come about every minute.',
    labels: { resource: ['marketplacesources', 'skills', 'jobs'] },
  },
  skill_operator_sources: {
    type: 'gauge',
    help: 'MarketplaceSources by their condition Ready.',
    labels: { state: ['ready', 'failed', 'progressing', 'suspended'] },
  },
  skill_operator_skills: {
    type: 'gauge',
    help: 'Skills by state, as the sources count them.',
    labels: { state: ['ready', 'invalid', 'building', 'failed', 'waiting'] },
  },
  skill_operator_git_requests_total: { type: 'counter', help: 'Git processes that talked to a remote.', labels: GIT },
  skill_operator_git_errors_total: {
    type: 'counter',
    help: 'Those that failed, by reason.',
    labels: { ...GIT, ...REASON },
  },
  skill_operator_git_request_duration_seconds: { type: 'histogram', help: 'Their duration.', labels: GIT },
  skill_operator_store_requests_total: {
    type: 'counter',
    help: 'Requests to the S3 store on the wire, repetitions among them.',
    labels: STORE,
  },
  skill_operator_store_errors_total: {
    type: 'counter',
    help: 'Calls of the store that failed, by reason.',
    labels: { ...STORE, ...REASON },
  },
  skill_operator_store_request_duration_seconds: {
    type: 'histogram',
    help: 'Duration of a call of the store, the wait for a connection included.',
    labels: STORE,
  },
  skill_operator_engine_requests_total: { type: 'counter', help: 'Steps asked of a sandbox engine.', labels: ENGINE },
  skill_operator_engine_errors_total: {
    type: 'counter',
    help: 'Those that failed, by reason.',
    labels: { ...ENGINE, ...REASON },
  },
  skill_operator_engine_request_duration_seconds: { type: 'histogram', help: 'Their duration.', labels: ENGINE },
  skill_operator_builds_waiting: { type: 'gauge', help: 'Skills that wait for a build slot.', labels: {} },
  skill_operator_builds_running: { type: 'gauge', help: 'Skills with a build Job under way.', labels: {} },
  skill_operator_builds_total: {
    type: 'counter',
    help: 'Build Jobs that ended; `failed` ones are tried again or not, the Skill says why.',
    labels: { engine: ENGINES, result: ['succeeded', 'failed'] },
  },
  skill_operator_build_duration_seconds: {
    type: 'histogram',
    help: 'From the start of a build to its end.',
    labels: { engine: ENGINES, result: ['succeeded', 'failed'] },
  },
  skill_operator_upkeep_total: {
    type: 'counter',
    help: 'What heal, sweep and ledger found or did.',
    labels: {
      action: [
        ...(['marked', 'unmarked', 'package_deleted', 'image_deleted'] as const),
        ...(['package_missing', 'template_lost', 'ledger_removed', 'ledger_failed'] as const),
      ],
    },
  },
  skill_operator_blocked: {
    type: 'gauge',
    help: '1 while heal or sweep waits for a person.',
    labels: { block: /^(?:SweepBlocked|StoreSuspect|EngineSuspect\.(?:cubesandbox|e2b))$/ },
  },
  skill_operator_spans_total: {
    type: 'counter',
    help: 'Spans for the collector, where tracing is on.',
    labels: { result: ['sent', 'dropped'] },
  },
  skill_operator_webhook_deliveries_total: {
    type: 'counter',
    help: 'Deliveries at the webhook receiver by Git host.',
    labels: { host: /^[a-z]{1,16}$/, result: WEBHOOK_RESULTS },
  },
} as const satisfies Record<string, Definition>;

export type MetricName = keyof typeof METRICS;

/** Names of the metrics of one type. */
export type MetricOf<T extends Definition['type']> = {
  [N in MetricName]: (typeof METRICS)[N]['type'] extends T ? N : never;
}[MetricName];

/** The labels of a metric, all of them. */
export type LabelsOf<N extends MetricName> = Readonly<Record<keyof (typeof METRICS)[N]['labels'], string>>;

/** The value if the metric's label may have it, else `other`. */
export function boundedLabel(values: LabelValues, value: string): string {
  const known = values instanceof RegExp ? values.test(value) : values.includes(value);
  return known ? value : 'other';
}
