import { expect, test } from 'vitest';
import { createMetrics } from '../../../src/base/metrics.ts';
import { Controller } from '../../../src/kube/controller.ts';
import { Instruments } from '../../../src/kube/instruments.ts';
import { WorkQueue } from '../../../src/kube/queue.ts';
import { parseSamples } from '../../support/samples.ts';
import { FakeClock, settle } from './fake-clock.ts';

test('a controller and its queue tell the metrics what controller-runtime tells', async () => {
  const clock = new FakeClock();
  const metrics = createMetrics();
  const instruments = new Instruments('skill', 1, metrics);
  const queue = new WorkQueue({ clock, random: () => 1, observer: instruments.queue });
  const controller = new Controller({
    ...{ name: 'skill', workers: 1, intervalOf: () => 60_000, clock, queue },
    reconcile: instruments.around(async (key, signal) => {
      await clock.sleep(2_000, signal);
      if (key === 'b') throw new TypeError('a defect');
      return {};
    }),
    observe: (outcome, seconds) => instruments.reconciled(outcome, seconds),
  });
  const read = async () => {
    instruments.measure(queue, clock);
    const samples = parseSamples(await metrics.render());
    return (name: string, labels: Record<string, string> = {}) => samples.value(name, labels);
  };
  const stop = new AbortController();
  for (const key of ['a', 'b', 'b']) controller.add(key, { priority: key === 'b' && queue.depth === 2 });
  const ended = controller.run(stop.signal);
  await clock.advance(1_000);
  const during = await read();
  expect({
    depth: during('workqueue_depth'),
    active: during('controller_runtime_active_workers'),
    most: during('controller_runtime_max_concurrent_reconciles'),
    oldest: during('workqueue_longest_running_processor_seconds'),
    unfinished: during('workqueue_unfinished_work_seconds'),
  }).toEqual({ depth: 1, active: 1, most: 1, oldest: 1, unfinished: 1 });
  await clock.advance(3_000);
  stop.abort();
  await settle();
  await ended;
  const after = await read();
  expect({
    adds: after('workqueue_adds_total'),
    retries: after('workqueue_retries_total'),
    waited: after('workqueue_queue_duration_seconds_sum'),
    worked: after('workqueue_work_duration_seconds_sum'),
    active: after('controller_runtime_active_workers'),
    success: after('controller_runtime_reconcile_total', { result: 'success' }),
    panics: after('controller_runtime_reconcile_panics_total'),
    errors: after('controller_runtime_reconcile_errors_total'),
  }).toEqual({ adds: 3, retries: 1, waited: 3, worked: 4, active: 0, success: 1, panics: 1, errors: 1 });
});
