import { describe, expect, it } from 'vitest';
import { rfc3339, systemClock } from '../../../src/base/clock.ts';
import { DeadlineExceeded, withDeadline } from '../../../src/base/deadline.ts';
import { isAbort, messageOf, PolicyError, retry, stalled, waiting } from '../../../src/base/errors.ts';
import { createLogger, type Logger, type LogLevel } from '../../../src/base/log.ts';
import { createMetrics } from '../../../src/base/metrics.ts';
import { REASONS } from '../../../src/base/reasons.ts';
import { holdSecret } from '../../../src/base/redact.ts';

const forever = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(new Error('own words'))));
const live = () => new AbortController();

describe('withDeadline', () => {
  it('gives what the work gives', async () => {
    expect(await withDeadline(live().signal, 1_000, async () => 7)).toBe(7);
    await expect(withDeadline(live().signal, 1_000, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  });

  it('ends with DeadlineExceeded and aborts the work, whatever that says then', async () => {
    let inner: AbortSignal | undefined;
    const call = withDeadline(live().signal, 5, (signal) => {
      inner = signal;
      return forever(signal);
    });
    await expect(call).rejects.toThrow(new DeadlineExceeded(5));
    expect(inner?.aborted).toBe(true);
  });

  it('ends even when the work does not listen', async () => {
    await expect(withDeadline(live().signal, 5, () => new Promise(() => undefined))).rejects.toThrow(
      'no answer within 5 ms',
    );
  });

  it('ends with the reason of the caller', async () => {
    const controller = live();
    const call = withDeadline(controller.signal, 60_000, forever);
    controller.abort(new Error('stopping'));
    await expect(call).rejects.toThrow('stopping');
  });

  it('starts nothing for a caller that has gone', async () => {
    const controller = live();
    controller.abort(new Error('gone'));
    let started = false;
    const call = withDeadline(controller.signal, 1_000, async () => {
      started = true;
    });
    await expect(call).rejects.toThrow('gone');
    expect(started).toBe(false);
  });
});

describe('PolicyError', () => {
  it.each([
    [stalled, 'Stalled'],
    [waiting, 'Waiting'],
    [retry, 'Retry'],
  ] as const)('%o carries policy %s, reason, pause and a redacted message', (make, policy) => {
    const cause = new Error('inner');
    const error = make('GitUnreachable', 'no https://u:p@h/', { retryAfterMs: 3, cause });
    expect(error).toBeInstanceOf(PolicyError);
    expect(error).toMatchObject({
      policy,
      reason: 'GitUnreachable',
      message: 'no https://***@h/',
      retryAfterMs: 3,
      cause,
    });
  });
});

describe('messageOf', () => {
  it.each<[string, unknown, string]>([
    ['an error', new Error('a\n  b'), 'a b'],
    ['a text with a secret', 'https://u:p@h/', 'https://***@h/'],
    ['undefined', undefined, 'undefined'],
    ['an object', {}, '[object Object]'],
  ])('%s', (_, thrown, expected) => {
    expect(messageOf(thrown)).toBe(expected);
  });
});

describe('isAbort', () => {
  const aborted = AbortSignal.abort(new Error('stop'));
  it.each<[string, unknown, AbortSignal, boolean]>([
    ['the reason of the signal', aborted.reason, aborted, true],
    ['an AbortError after the abort', new DOMException('x', 'AbortError'), aborted, true],
    ['an AbortError of another signal', new DOMException('x', 'AbortError'), live().signal, false],
    ['a failure after the abort', new Error('x'), aborted, false],
  ])('%s', (_, error, signal, expected) => {
    expect(isAbort(error, signal)).toBe(expected);
  });
});

describe('systemClock', () => {
  it('sleeps, and wakes with the reason of the signal', async () => {
    const before = systemClock.monotonic();
    await systemClock.sleep(15, live().signal);
    expect(systemClock.monotonic() - before).toBeGreaterThan(10);
    const controller = live();
    const sleeping = systemClock.sleep(60_000, controller.signal);
    controller.abort(new Error('stop'));
    await expect(sleeping).rejects.toThrow('stop');
    await expect(systemClock.sleep(1, controller.signal)).rejects.toThrow('stop');
  });

  it('calls once, unless it is cancelled', async () => {
    const called: string[] = [];
    systemClock.after(5, () => called.push('a'));
    const cancel = systemClock.after(5, () => called.push('b'));
    cancel();
    await systemClock.sleep(40, live().signal);
    expect(called).toEqual(['a']);
  });
});

it('rfc3339 has whole seconds in UTC', () => {
  expect(rfc3339(1_767_225_599_999)).toBe('2025-12-31T23:59:59Z');
});

describe('the log', () => {
  function logged(write: (log: Logger) => void, level: LogLevel = 'info'): string[] {
    const lines: string[] = [];
    write(createLogger(level, { write: (line) => lines.push(line) }).logger);
    return lines;
  }

  it('is one JSON object per line with level, time and message', () => {
    const [line = ''] = logged((log) => log.warn({ key: 'ns/a' }, 'careful'));
    expect(JSON.parse(line)).toEqual({
      level: 'warn',
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      key: 'ns/a',
      msg: 'careful',
    });
  });

  it('leaves out what is below its level', () => {
    expect(logged((log) => log.info('x'), 'warn')).toEqual([]);
  });

  it('masks secrets wherever they stand: message, fields, stacks, escaped', () => {
    const value = 'canary "with" \\ quotes';
    holdSecret(value);
    const text = logged((log) =>
      log.error({ err: new Error(`failed: ${value}`), deep: { url: 'https://u:p@h/' } }, value),
    ).join('');
    expect(text).not.toMatch(/canary|u:p@/);
    expect(JSON.parse(text)).toMatchObject({ msg: '***', deep: { url: 'https://***@h/' } });
  });
});

describe('the metrics', () => {
  it('are of one instance alone and named as the field names them', async () => {
    const [one, two] = [createMetrics(), createMetrics()];
    one.add('controller_runtime_reconcile_total', { controller: 'skill', result: 'waiting' });
    one.observe('controller_runtime_reconcile_time_seconds', { controller: 'skill' }, 0.2);
    one.set('workqueue_depth', { name: 'skill', controller: 'skill' }, 3);
    one.add('rest_client_requests_total', { method: 'patch', code: '200' });
    one.add('skill_operator_git_requests_total', { operation: 'fetch' });
    const [text, other] = [await one.render(), await two.render()];
    expect(text).toContain('controller_runtime_reconcile_total{controller="skill",result="waiting"} 1');
    expect(text).toContain('controller_runtime_reconcile_time_seconds_bucket{le="0.25",controller="skill"} 1');
    expect(text).toContain('workqueue_depth{name="skill",controller="skill"} 3');
    expect(text).toContain('rest_client_requests_total{method="patch",code="200"} 1');
    expect(text).toContain('skill_operator_git_requests_total{operation="fetch"} 1');
    expect(other).not.toContain('controller="skill"');
  });
});

describe('the reasons', () => {
  it.each(Object.entries(REASONS))('%s reads well', (reason, text) => {
    expect(reason).toMatch(/^[A-Z][A-Za-z]+$/);
    expect(text).toMatch(/^\S.*\.$/);
    expect(text).not.toContain('|');
  });
});
