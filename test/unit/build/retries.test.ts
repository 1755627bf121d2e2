import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RETRY_RULES, retryAfterMs } from '../../../src/build/failures.ts';
import { exited, failedJob, fetched, observe } from './observations.ts';

describe('retries', () => {
  test('follow this table: milliseconds after attempts 1 to 6', () => {
    const row = (name: string) =>
      [1, 2, 3, 4, 5, 6].map((attempt) => retryAfterMs(name as keyof typeof RETRY_RULES, attempt) ?? 'never').join(' ');
    expect(Object.fromEntries(Object.keys(RETRY_RULES).map((name) => [name, row(name)]))).toMatchInlineSnapshot(`
      {
        "Capacity": "60000 120000 240000 480000 900000 900000",
        "Context": "5000 10000 20000 40000 never never",
        "Disk": "never never never never never never",
        "Infra": "30000 60000 120000 240000 never never",
        "Memory": "30000 never never never never never",
        "Push": "60000 120000 240000 480000 never never",
        "Setup": "300000 300000 300000 300000 300000 300000",
        "Timeout": "30000 never never never never never",
        "User": "never never never never never never",
      }
    `);
  });

  test('end for every class in which author code ran', () => {
    const endless = Object.entries(RETRY_RULES).filter(([, { attempts }]) => !Number.isFinite(attempts));
    expect(endless.map(([name]) => name)).toEqual(['Setup', 'Capacity']);
  });

  test('count by the attempt that stands in the Job', () => {
    const last = observe({ job: failedJob(5), pods: fetched(exited(11)) });
    expect(last).not.toHaveProperty('retryAfterMs');
    expect(last).toMatchObject({ message: expect.stringMatching(/\(attempt 5, the last one\)$/) });
    expect(observe({ job: failedJob(4), pods: fetched(exited(11)) })).toMatchObject({ retryAfterMs: 240_000 });
  });

  test('never wait longer than their bound, whatever the number', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), fc.constantFrom(...Object.keys(RETRY_RULES)), (attempt, name) => {
        const wait = retryAfterMs(name as keyof typeof RETRY_RULES, attempt);
        expect(wait === undefined || (wait >= 0 && wait <= 3_600_000)).toBe(true);
      }),
    );
  });
});
