import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/types.ts';
import { Coalescer } from '../../../src/webhook/coalescer.ts';
import { keyOfPath } from '../../../src/webhook/http.ts';
import { TokenReader, TooManyReads } from '../../../src/webhook/tokens.ts';
import { FakeClock } from '../kube/fake-clock.ts';

describe('keyOfPath', () => {
  test.each([
    ['/hooks/team/skills', 'team/skills'],
    ['/hooks/team/skills?x=1', 'team/skills'],
    ['/hooks/a/b.c-d.e', 'a/b.c-d.e'],
  ])('%s is %s', (path, key) => expect(keyOfPath(path)).toBe(key));
  test.each([
    undefined,
    '',
    '/',
    '/hooks',
    '/hooks/team',
    '/hooks/team/',
    '/hooks/team/a/b',
    '/hooks/team/a/',
    '/hooks/Team/a',
    '/hooks/-a/b',
    '/hooks/team/.',
    '/hooks/team/..',
    '/hooks/team/a..b',
    '/hooks/team/a%2fb',
    '/hooks/team/a%00',
    '//hooks/team/a',
    `/hooks/${'a'.repeat(64)}/b`,
    `/hooks/a/${`${'a'.repeat(62)}.`.repeat(4)}aaa`,
    '/hooks/team/__proto__',
  ])('%s names nothing', (path) => expect(keyOfPath(path)).toBeUndefined());
});

const PAUSE = 3_000;

function coalescer(clock: FakeClock, fails: (key: string) => boolean = () => false) {
  const log: string[] = [];
  const made = new Coalescer({
    clock,
    pauseMs: PAUSE,
    act: async (key) => {
      log.push(`${fails(key) ? 'fail' : 'act'} ${key} at ${clock.monotonic()}`);
      if (fails(key)) throw new Error('no');
    },
    failed: (key, _error, last) => log.push(`told ${key}${last ? ' last' : ''}`),
  });
  return { made, log };
}

describe('Coalescer', () => {
  test('acts at once, and once more at the end of the pause for all that came meanwhile', async () => {
    const clock = new FakeClock();
    const start = clock.monotonic();
    const { made, log } = coalescer(clock);
    expect(await made.request('a')).toBe('acted');
    for (let i = 0; i < 50; i++) expect(await made.request('a')).toBe('joined');
    expect(await made.request('b')).toBe('acted');
    await clock.advance(PAUSE);
    expect(log).toEqual([`act a at ${start}`, `act b at ${start}`, `act a at ${start + PAUSE}`]);
    await clock.advance(PAUSE);
    expect(await made.request('a')).toBe('acted');
    expect(log).toHaveLength(4);
  });
  test('what comes during an act is followed by one more', async () => {
    const clock = new FakeClock();
    const { promise, resolve } = Promise.withResolvers<void>();
    let acts = 0;
    const made = new Coalescer({
      clock,
      pauseMs: PAUSE,
      act: () => {
        acts++;
        return promise;
      },
      failed: () => undefined,
    });
    const first = made.request('a');
    expect(await made.request('a')).toBe('joined');
    resolve();
    expect(await first).toBe('acted');
    await clock.advance(PAUSE);
    expect(acts).toBe(2);
  });
  test('tells the first sender of a failure, and tries five times for those that joined', async () => {
    const clock = new FakeClock();
    const { made, log } = coalescer(clock, () => true);
    await expect(made.request('a')).rejects.toThrow('no');
    await made.request('a');
    await clock.advance(20 * PAUSE);
    expect(log.filter((line) => line.startsWith('told'))).toEqual([...Array(4).fill('told a'), 'told a last']);
    expect(log.filter((line) => line.startsWith('fail'))).toHaveLength(6);
  });
  test('flush acts now for those that wait, and nothing comes later', async () => {
    const clock = new FakeClock();
    const { made, log } = coalescer(clock);
    await made.request('a');
    await made.request('a');
    await made.request('b');
    await made.flush();
    await clock.advance(10 * PAUSE);
    expect(log.map((line) => line.split(' at ')[0])).toEqual(['act a', 'act b', 'act a']);
  });
});

const never = new AbortController().signal;

describe('TokenReader', () => {
  const encode = (text: string) => Buffer.from(text).toString('base64');
  function reader(clock: FakeClock, answer: (name: string) => KubeObject | undefined | Error) {
    const asked: string[] = [];
    const api = {
      get: async <T extends KubeObject>(_resource: unknown, namespace: string, name: string) => {
        asked.push(`${namespace}/${name}`);
        const found = answer(name);
        if (found instanceof Error) throw found;
        return found as T | undefined;
      },
    };
    return { tokens: new TokenReader(api, clock), asked };
  }
  const good = (name: string) => ({ metadata: { name }, data: { token: encode('hook-token-4711x') } });

  test('asks once in ten seconds, for tokens that are there and for those that are not', async () => {
    const clock = new FakeClock();
    const { tokens, asked } = reader(clock, (name) => (name === 'good' ? good(name) : undefined));
    for (let i = 0; i < 100; i++) {
      expect(await tokens.read('ns', 'good', never)).toEqual({ token: 'hook-token-4711x' });
      expect(await tokens.read('ns', 'none', never)).toEqual({ missing: 'Secret "none" not found' });
    }
    expect(asked).toEqual(['ns/good', 'ns/none']);
    await clock.advance(10_000);
    await tokens.read('ns', 'good', never);
    expect(asked).toHaveLength(3);
  });
  test('equal questions share one answer', async () => {
    const { tokens, asked } = reader(new FakeClock(), good);
    await Promise.all(Array.from({ length: 100 }, () => tokens.read('ns', 'good', never)));
    expect(asked).toHaveLength(1);
  });
  test('an error is not kept', async () => {
    let down = true;
    const { tokens } = reader(new FakeClock(), (name) => (down ? new Error('down') : good(name)));
    await expect(tokens.read('ns', 'a', never)).rejects.toThrow('down');
    down = false;
    expect(await tokens.read('ns', 'a', never)).toHaveProperty('token');
  });
  test('bounds what all Secrets together cost', async () => {
    const clock = new FakeClock();
    const { tokens, asked } = reader(clock, good);
    const flood = (from: number) =>
      Promise.allSettled(Array.from({ length: 100 }, (_, i) => tokens.read('ns', `s${from + i}`, never)));
    const refused = (await flood(0)).filter((result) => result.status === 'rejected');
    expect(asked).toHaveLength(20);
    expect(refused.every(({ reason }) => reason instanceof TooManyReads)).toBe(true);
    await clock.advance(1_000);
    await flood(100);
    expect(asked).toHaveLength(30);
  });
});
