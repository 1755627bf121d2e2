import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DeadlineExceeded } from '../../../src/base/deadline.ts';
import { stalled } from '../../../src/base/errors.ts';
import { fullJitter, jitterUp } from '../../../src/kube/backoff.ts';
import {
  fromStatus,
  fromTransport,
  KubeError,
  LeaseLost,
  parseRetryAfter,
  toPolicyError,
} from '../../../src/kube/errors.ts';
import { jsonLines, readText } from '../../../src/kube/frames.ts';
import { Heap } from '../../../src/kube/heap.ts';
import { freeIn, held, observe } from '../../../src/kube/lease.ts';
import { microTime } from '../../../src/kube/microtime.ts';
import { collectionPath, objectPath, queryOf } from '../../../src/kube/scope.ts';
import { Semaphore } from '../../../src/kube/semaphore.ts';
import { keyOf, splitKey } from '../../../src/kube/types.ts';

const SKILLS = { group: 'skills.example', version: 'v1', plural: 'skills', kind: 'Skill', namespaced: true };
const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };

describe('microTime', () => {
  test('has exactly six fractional digits and is the same instant, whatever the clock says', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 4e12, noNaN: true }), (ms) => {
        const text = microTime(ms);
        expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
        expect(Date.parse(text)).toBe(Math.floor(ms));
      }),
    );
  });

  test('keeps microseconds', () => expect(microTime(1_000.25)).toBe('1970-01-01T00:00:01.000250Z'));
});

describe('paths', () => {
  test.each([
    [collectionPath(SKILLS), '/apis/skills.example/v1/skills'],
    [collectionPath(SKILLS, 'a'), '/apis/skills.example/v1/namespaces/a/skills'],
    [collectionPath(NAMESPACES, 'ignored'), '/api/v1/namespaces'],
    [objectPath(SKILLS, 'a', 'b', 'status'), '/apis/skills.example/v1/namespaces/a/skills/b/status'],
    [objectPath(NAMESPACES, '', 'a'), '/api/v1/namespaces/a'],
    [objectPath(SKILLS, 'a', '../x?y#z'), '/apis/skills.example/v1/namespaces/a/skills/..%2Fx%3Fy%23z'],
    [queryOf({}), ''],
    [
      queryOf({ labelSelector: 'a=b,c' }, { limit: 5, continue: undefined, watch: true }),
      '?labelSelector=a%3Db%2Cc&limit=5&watch=true',
    ],
  ])('%s', (path, want) => expect(path).toBe(want));

  test.each(['', '.', '..'])('the name "%s" is refused', (name) => {
    expect(() => objectPath(SKILLS, 'a', name)).toThrow(TypeError);
  });

  test('a namespaced object needs a namespace', () => {
    expect(() => objectPath(SKILLS, '', 'a')).toThrow('Skill "a" needs a namespace');
  });

  test('keys name an object and come apart again', () => {
    expect(keyOf({ metadata: { name: 'a', namespace: 'n' } })).toBe('n/a');
    expect(splitKey('n/a')).toEqual({ namespace: 'n', name: 'a' });
    expect(splitKey(keyOf({ metadata: { name: 'a' } }))).toEqual({ namespace: '', name: 'a' });
  });
});

describe('back-off', () => {
  test('stays inside its bounds', () => {
    const b = { baseMs: 1000, maxMs: 900_000 };
    fc.assert(
      fc.property(fc.nat(2000), fc.double({ min: 0, max: 0.9999, noNaN: true }), (attempt, random) => {
        expect(fullJitter(b, attempt, random)).toBeGreaterThanOrEqual(500);
        expect(fullJitter(b, attempt, random)).toBeLessThanOrEqual(900_000);
        expect(jitterUp(b, attempt, random)).toBeGreaterThanOrEqual(1000);
        expect(jitterUp(b, attempt, random)).toBeLessThanOrEqual(900_000);
      }),
    );
  });
});

test('the heap gives back what it got, smallest first', () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), (numbers) => {
      const heap = new Heap<number>((a, b) => a - b);
      for (const n of numbers) heap.push(n);
      heap.retain((n) => n % 3 !== 0);
      const out: number[] = [];
      for (let n = heap.pop(); n !== undefined; n = heap.pop()) out.push(n);
      expect(out).toEqual(numbers.filter((n) => n % 3 !== 0).sort((a, b) => a - b));
    }),
  );
});

describe('the semaphore', () => {
  const signal = new AbortController().signal;

  test('lets in as many as it has places, and hands a place on', async () => {
    const s = new Semaphore(1);
    await s.acquire(signal);
    let second = false;
    const waiting = s.acquire(signal).then(() => {
      second = true;
    });
    await Promise.resolve();
    expect(second).toBe(false);
    s.release();
    await waiting;
    s.release();
    await s.acquire(signal);
  });

  test('an aborted waiter leaves no hole', async () => {
    const s = new Semaphore(1);
    await s.acquire(signal);
    const stop = new AbortController();
    const waiting = s.acquire(stop.signal);
    stop.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    expect(s.waiting).toBe(0);
    s.release();
    await s.acquire(signal);
  });
});

describe('watch frames', () => {
  async function* chunks(...texts: string[]): AsyncGenerator<Buffer> {
    for (const text of texts) yield Buffer.from(text);
  }
  const collect = async (cap: number, ...texts: string[]) => {
    const out: unknown[] = [];
    for await (const value of jsonLines(chunks(...texts), 'watch', cap)) out.push(value);
    return out;
  };

  test('come whole, however the stream is cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue(), { maxLength: 5 }),
        fc.array(fc.nat(200), { maxLength: 8 }),
        async (values, cuts) => {
          const text = Buffer.from(values.map((v) => `${JSON.stringify(v)}\n`).join(''));
          const edges = [0, ...cuts.filter((c) => c < text.length).sort((a, b) => a - b), text.length];
          async function* pieces() {
            for (let i = 1; i < edges.length; i++) yield text.subarray(edges[i - 1], edges[i]);
          }
          const out: unknown[] = [];
          for await (const value of jsonLines(pieces(), 'watch')) out.push(value);
          expect(out).toEqual(JSON.parse(JSON.stringify(values)));
        },
      ),
    );
  });

  test('half a frame at the end is an error', async () => {
    await expect(collect(100, '{"a":1}\n{"b"')).rejects.toMatchObject({ reason: 'BadBody', code: 0 });
  });

  test('so are text that is no JSON and a frame above the cap', async () => {
    await expect(collect(100, '<html>\n')).rejects.toMatchObject({ reason: 'BadBody' });
    await expect(collect(10, 'x'.repeat(11))).rejects.toMatchObject({ reason: 'BodyTooLarge' });
  });

  test('a body above its cap is not read on', async () => {
    let destroyed = false;
    const body = Object.assign(chunks('x'.repeat(6), 'y'.repeat(6), 'z'), {
      destroy: () => {
        destroyed = true;
      },
    });
    await expect(readText(body, 10, 'get x')).rejects.toMatchObject({ reason: 'BodyTooLarge' });
    expect(destroyed).toBe(true);
  });
});

describe('errors', () => {
  test.each([
    [undefined, undefined],
    ['7', 7000],
    ['0', 0],
    ['soon', undefined],
    ['Thu, 01 Jan 1970 00:00:05 GMT', 5000],
    ['-3', undefined],
  ])('Retry-After %s', (header, want) => expect(parseRetryAfter(header, 0)).toBe(want));

  test('a Status becomes an error with its causes', () => {
    const error = fromStatus('patch skills a/b', 422, {
      kind: 'Status',
      code: 422,
      reason: 'Invalid',
      message: 'spec.url: wrong',
      details: {
        name: 'b',
        causes: [{ field: 'spec.url', message: 'wrong', reason: 'FieldValueInvalid' }],
        retryAfterSeconds: 2,
      },
    });
    expect(error).toMatchObject({ code: 422, reason: 'Invalid', retryAfterMs: 2000, causes: [{ field: 'spec.url' }] });
    expect(error.message).toMatchInlineSnapshot(`"patch skills a/b: 422 Invalid: spec.url: wrong"`);
  });

  test('an absurd wait is cut to a quarter of an hour', () => {
    expect(fromStatus('get x', 429, undefined, 9e9).retryAfterMs).toBe(900_000);
  });

  test('a proxy that answers HTML leaves the code', () => {
    expect(fromStatus('get x', 502, undefined).message).toMatchInlineSnapshot(
      `"get x: 502 HTTP502: no Status in the answer"`,
    );
  });

  test('a resource the server does not know is not the same as an object that is absent', () => {
    expect(fromStatus('get x', 404, { reason: 'NotFound', details: {} }).reason).toBe('ResourceNotFound');
    expect(fromStatus('get x', 404, { reason: 'NotFound', details: { name: 'x' } }).reason).toBe('NotFound');
  });

  test('transport errors are Timeout or Network, and LeaseLost stays what it is', () => {
    expect(fromTransport('get x', new DeadlineExceeded(10))).toMatchObject({ code: 0, reason: 'Timeout' });
    expect(fromTransport('get x', new Error('ECONNRESET'))).toMatchObject({ code: 0, reason: 'Network' });
    expect(fromTransport('get x', new LeaseLost('no'))).toBeInstanceOf(LeaseLost);
  });

  test('secrets do not get into the message', () => {
    expect(new KubeError(0, 'Network', 'proxy http://u:topsecret@p refused').message).not.toContain('topsecret');
  });

  const status = (code: number, extra: object = {}) =>
    fromStatus('patch skills a/b', code, { reason: 'R', message: 'm', ...extra });
  test.each([
    [status(401), 'Retry', 'Forbidden'],
    [status(403), 'Waiting', 'Forbidden'],
    [status(404), 'Waiting', 'ApiUnavailable'],
    [status(404, { details: { name: 'b' } }), 'Retry', 'Conflict'],
    [status(409), 'Retry', 'Conflict'],
    [status(410), 'Retry', 'Conflict'],
    [status(413), 'Stalled', 'ApplyRejected'],
    [status(422), 'Stalled', 'ApplyRejected'],
    [status(429), 'Retry', 'ApiUnavailable'],
    [status(500), 'Retry', 'ApiUnavailable'],
    [new KubeError(0, 'Timeout', 'get x'), 'Retry', 'ApiUnavailable'],
    [new LeaseLost('gone'), 'Retry', 'ApiUnavailable'],
    [new TypeError('x is undefined'), 'Retry', 'InternalError'],
    ['a string', 'Retry', 'InternalError'],
  ])('%s is %s %s', (error, policy, reason) => expect(toPolicyError(error)).toMatchObject({ policy, reason }));

  test('an error with a policy keeps it, and a wait is handed on', () => {
    const own = stalled('Invalid', 'no');
    expect(toPolicyError(own)).toBe(own);
    expect(toPolicyError(new KubeError(429, 'TooManyRequests', 'x', { retryAfterMs: 9 })).retryAfterMs).toBe(9);
  });

  test('messages say what to do', () => {
    expect(toPolicyError(status(403)).message).toMatchInlineSnapshot(
      `"patch skills a/b: 403 R: m. Compare the ClusterRole of the operator's ServiceAccount with the one in the chart and apply it."`,
    );
    expect(
      toPolicyError(status(403, { details: { causes: [{ reason: 'NamespaceTerminating' }] } })).message,
    ).toMatchInlineSnapshot(`"patch skills a/b: 403 R: m. The namespace is being deleted; nothing to do."`);
    expect(toPolicyError(status(404)).message).toMatchInlineSnapshot(
      `"patch skills a/b: 404 ResourceNotFound: m. Install the CRDs of this release: kubectl apply --server-side -f crds/"`,
    );
  });
});

describe('leases', () => {
  const lease = (resourceVersion: string, spec: object) => ({ metadata: { name: 'l', resourceVersion }, spec });
  const seen = (spec: object, at = 0) => ({ lease: lease('1', spec), at });

  test.each([
    ['nobody holds it', seen({}), 0, 0],
    ['it was released', seen({ holderIdentity: '' }), 0, 0],
    ['we hold it already', seen({ holderIdentity: 'me', leaseDurationSeconds: 15 }), 0, 0],
    ['another holds it', seen({ holderIdentity: 'you', leaseDurationSeconds: 15 }), 4000, 11_000],
    ['another held it and fell silent', seen({ holderIdentity: 'you', leaseDurationSeconds: 15 }), 15_000, 0],
    [
      'the times in it are of another clock',
      seen({ holderIdentity: 'you', leaseDurationSeconds: 15, renewTime: '1999-01-01T00:00:00.000000Z' }),
      0,
      15_000,
    ],
    ['the holder named no duration', seen({ holderIdentity: 'you' }), 0, 20_000],
  ])('%s', (_name, observation, now, want) => expect(freeIn(observation, 'me', 20_000, now)).toBe(want));

  test('the first sight of a version counts, not the last', () => {
    const first = observe(undefined, lease('1', {}), 10);
    expect(observe(first, lease('1', {}), 99).at).toBe(10);
    expect(observe(first, lease('2', {}), 99).at).toBe(99);
  });

  test('a renewal keeps acquireTime, a new holder counts a transition', () => {
    const mine = held(undefined, 'me', 15_000, 0);
    expect(mine).toMatchObject({ holderIdentity: 'me', leaseDurationSeconds: 15, leaseTransitions: 0 });
    const renewed = held(mine, 'me', 15_000, 5000);
    expect(renewed).toMatchObject({ acquireTime: mine.acquireTime, leaseTransitions: 0, renewTime: microTime(5000) });
    expect(held(renewed, 'you', 15_000, 9000)).toMatchObject({ acquireTime: microTime(9000), leaseTransitions: 1 });
  });
});
