import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Tracer } from '../base/trace.ts';
import { Controller, type ControllerOptions } from '../kube/controller.ts';
import { Instruments } from '../kube/instruments.ts';
import { WorkQueue } from '../kube/queue.ts';
import type { Reconcile } from '../kube/types.ts';

/** What tells one controller from another. */
export type ControllerParts = Pick<ControllerOptions, 'reconcile' | 'intervalOf' | 'settles'>;

interface Observers {
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  tracer: Tracer;
}

/** A controller with a queue of its own whose passes are traced and counted; `measure` sets what is read before each scrape. */
export function observedController(
  name: string,
  workers: number,
  parts: ControllerParts,
  { clock, logger, metrics, tracer }: Observers,
): { controller: Controller; measure: () => void } {
  const traced: Reconcile = (key, signal) =>
    tracer.root(`reconcile ${name}`, { controller: name, key }, () => parts.reconcile(key, signal));
  const instruments = new Instruments(name, workers, metrics);
  const queue = new WorkQueue({ clock, observer: instruments.queue });
  const controller = new Controller({
    ...{ name, workers, clock, logger, queue, ...parts },
    reconcile: instruments.around(traced),
    observe: (outcome, seconds) => instruments.reconciled(outcome, seconds),
  });
  return { controller, measure: () => instruments.measure(queue, clock) };
}
