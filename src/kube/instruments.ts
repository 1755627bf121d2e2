import type { Clock } from '../base/clock.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Outcome } from './controller.ts';
import type { QueueObserver, WorkQueue } from './queue.ts';
import type { Reconcile } from './types.ts';

/** What one controller and its queue tell the metrics, under the names of controller-runtime. */
export class Instruments {
  readonly queue: QueueObserver;
  readonly #name: string;
  readonly #metrics: Metrics;
  #active = 0;

  constructor(name: string, workers: number, metrics: Metrics) {
    this.#name = name;
    this.#metrics = metrics;
    const labels = { name, controller: name };
    metrics.set('controller_runtime_max_concurrent_reconciles', { controller: name }, workers);
    this.queue = {
      added: () => metrics.add('workqueue_adds_total', labels),
      taken: (ms) => metrics.observe('workqueue_queue_duration_seconds', labels, ms / 1000),
      done: (ms) => metrics.observe('workqueue_work_duration_seconds', labels, ms / 1000),
      retried: () => metrics.add('workqueue_retries_total', labels),
    };
  }

  /** The same work, counted while it is under way. */
  around(reconcile: Reconcile): Reconcile {
    return async (key, signal) => {
      this.#move(1);
      try {
        return await reconcile(key, signal);
      } finally {
        this.#move(-1);
      }
    };
  }

  /** One finished pass. */
  reconciled(outcome: Outcome, seconds: number): void {
    const controller = this.#name;
    this.#metrics.add('controller_runtime_reconcile_total', { controller, result: outcome.toLowerCase() });
    this.#metrics.observe('controller_runtime_reconcile_time_seconds', { controller }, seconds);
    if (outcome === 'panic') this.#metrics.add('controller_runtime_reconcile_panics_total', { controller });
    if (outcome === 'panic' || outcome === 'Retry') {
      this.#metrics.add('controller_runtime_reconcile_errors_total', { controller });
    }
  }

  /** Sets what is read rather than counted; before each scrape. */
  measure(queue: Pick<WorkQueue, 'depth' | 'agesOfWork'>, clock: Clock): void {
    const labels = { name: this.#name, controller: this.#name };
    const { total, oldest } = queue.agesOfWork(clock.monotonic());
    this.#metrics.set('workqueue_depth', labels, queue.depth);
    this.#metrics.set('workqueue_unfinished_work_seconds', labels, total / 1000);
    this.#metrics.set('workqueue_longest_running_processor_seconds', labels, oldest / 1000);
  }

  #move(by: number): void {
    this.#active += by;
    this.#metrics.set('controller_runtime_active_workers', { controller: this.#name }, this.#active);
  }
}
