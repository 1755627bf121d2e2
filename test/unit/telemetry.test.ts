import { describe, expect, test } from 'vitest';
import { retry } from '../../src/base/errors.ts';
import { createMetrics } from '../../src/base/metrics.ts';
import type { Operation } from '../../src/base/observe.ts';
import { measured } from '../../src/telemetry.ts';
import { parseSamples } from '../support/samples.ts';
import { FakeClock } from './kube/fake-clock.ts';

describe('measured', () => {
  const failing = [
    [retry('GitTimeout', 'slow'), 'GitTimeout'],
    [new DOMException('stopped', 'AbortError'), 'Aborted'],
    [new TypeError('a defect'), 'InternalError'],
  ] as const;
  test.each(failing)('a failed call is thrown on and counted by its reason: %s', async (error, reason) => {
    const metrics = createMetrics();
    const observe = measured(metrics, new FakeClock());
    await expect(observe({ system: 'git', name: 'fetch' }, () => Promise.reject(error))).rejects.toBe(error);
    const samples = parseSamples(await metrics.render());
    expect(samples.value('skill_operator_git_errors_total', { operation: 'fetch', reason })).toBe(1);
    expect(samples.value('skill_operator_git_requests_total', { operation: 'fetch' })).toBe(1);
  });

  test.each<[Operation, string, Record<string, string>]>([
    [{ system: 'git', name: 'ls-remote' }, 'skill_operator_git', { operation: 'ls-remote' }],
    [{ system: 'store', name: 'put' }, 'skill_operator_store', { operation: 'put' }],
    [{ system: 'engine', name: 'poll', target: 'e2b' }, 'skill_operator_engine', { operation: 'poll', engine: 'e2b' }],
  ])('%j is timed', async (operation, prefix, labels) => {
    const metrics = createMetrics();
    const clock = new FakeClock();
    const observe = measured(metrics, clock);
    const answer = await observe(operation, async () => {
      clock.freeze(1_500);
      return 'done';
    });
    expect(answer).toBe('done');
    const samples = parseSamples(await metrics.render());
    expect(samples.value(`${prefix}_request_duration_seconds_sum`, labels)).toBe(1.5);
    expect(samples.value(`${prefix}_errors_total`)).toBe(0);
  });
});
