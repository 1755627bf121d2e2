import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** Every metric of the operator; names follow controller-runtime and client-go where those have one. */
export interface Metrics {
  /** The text exposition of all metrics. */
  render(): Promise<string>;
  /** One finished reconcile. */
  reconcile(controller: string, result: 'success' | 'Stalled' | 'Waiting' | 'Retry' | 'panic', seconds: number): void;
  queueDepth(controller: string, depth: number): void;
  kubeRequest(verb: string, code: string): void;
  gitRequest(op: string): void;
  /** Requests to the store since start, by operation. */
  storeRequests(counts: Readonly<Record<string, number>>): void;
  /** What heal, sweep and ledger found or did. */
  upkeep(action: UpkeepAction, count: number): void;
  /** One delivery at the webhook receiver. */
  webhookDelivery(host: string, result: WebhookResult): void;
  /** Whether a block stands that a person has to lift. */
  blocked(block: string, stands: boolean): void;
}

/** The steps of heal, sweep and ledger that are counted. */
type UpkeepAction =
  | 'marked'
  | 'unmarked'
  | 'package_deleted'
  | 'image_deleted'
  | 'package_missing'
  | 'template_lost'
  | 'ledger_removed'
  | 'ledger_failed';

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

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** A registry of its own, so that two operators in one process (tests) never share a counter. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const total = new Counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Finished reconciles by controller and result.',
    labelNames: ['controller', 'result'],
    registers,
  });
  const seconds = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'Duration of a reconcile.',
    labelNames: ['controller'],
    buckets: SECONDS,
    registers,
  });
  const depth = new Gauge({
    name: 'workqueue_depth',
    help: 'Keys that wait in the queue.',
    labelNames: ['name'],
    registers,
  });
  const kube = new Counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the Kubernetes API by verb and status code.',
    labelNames: ['method', 'code'],
    registers,
  });
  const git = new Counter({
    name: 'skill_operator_git_requests_total',
    help: 'Git operations that contact a remote.',
    labelNames: ['operation'],
    registers,
  });
  const store = new Counter({
    name: 'skill_operator_store_requests_total',
    help: 'Requests to the S3 store by operation.',
    labelNames: ['operation'],
    registers,
  });
  const upkeep = new Counter({
    name: 'skill_operator_upkeep_total',
    help: 'What heal, sweep and ledger found or did, by action.',
    labelNames: ['action'],
    registers,
  });
  const blocked = new Gauge({
    name: 'skill_operator_blocked',
    help: 'Whether heal or sweep waits for a person, by block.',
    labelNames: ['block'],
    registers,
  });
  const webhooks = new Counter({
    name: 'skill_operator_webhook_deliveries_total',
    help: 'Deliveries at the webhook receiver by Git host and result.',
    labelNames: ['host', 'result'],
    registers,
  });
  return {
    render: () => registry.metrics(),
    reconcile: (controller, result, took) => {
      total.inc({ controller, result: result.toLowerCase() });
      seconds.observe({ controller }, took);
    },
    queueDepth: (name, value) => depth.set({ name }, value),
    kubeRequest: (method, code) => kube.inc({ method, code }),
    gitRequest: (operation) => git.inc({ operation }),
    upkeep: (action, count) => upkeep.inc({ action }, count),
    webhookDelivery: (host, result) => webhooks.inc({ host, result: result.toLowerCase() }),
    blocked: (block, stands) => blocked.set({ block }, stands ? 1 : 0),
    storeRequests: (counts) => {
      store.reset();
      for (const [operation, count] of Object.entries(counts)) store.inc({ operation }, count);
    },
  };
}
