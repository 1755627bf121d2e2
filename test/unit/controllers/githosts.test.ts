import { describe, expect, it } from 'vitest';
import { type PolicyError, retry, stalled, waiting } from '../../../src/base/errors.ts';
import { GitHosts, HostBusy, type HostLimits } from '../../../src/controllers/githosts.ts';
import { FakeClock } from '../kube/fake-clock.ts';

const URL_A = 'https://a.example.com/x.git';
const URL_B = 'https://b.example.com/x.git';

interface Ask {
  url?: string;
  caller?: string;
  urgent?: boolean;
}

/** Hosts with visits that a test lets in and out by hand. */
function world(limits: Partial<HostLimits> = {}) {
  const clock = new FakeClock();
  const hosts = new GitHosts(clock, { perHost: 3, minIntervalMs: 0, ...limits });
  const woken: string[] = [];
  const visit = (key: string, ask: Ask = {}) => ({
    ...{ url: URL_A, caller: 'ns/', urgent: false, ...ask },
    key,
    wake: (woke: string) => woken.push(woke),
  });
  /** Goes in and stays; undefined: no turn. */
  const enter = async (key: string, ask?: Ask) => {
    const gate = Promise.withResolvers<string>();
    let answered: (() => void) | undefined;
    const over = hosts.run(visit(key, ask), async (tell) => {
      answered = tell;
      return await gate.promise;
    });
    over.catch(() => undefined);
    const busy = await Promise.race([over.catch((error: unknown) => error), Promise.resolve()]);
    if (busy instanceof HostBusy || !answered) return undefined;
    return {
      answered,
      leave: async (error?: PolicyError) => {
        if (error) gate.reject(error);
        else gate.resolve('done');
        return await over.catch((reason: unknown) => reason);
      },
    };
  };
  /** Goes in and out at once. */
  const once = (key: string, error?: PolicyError, ask?: Ask): Promise<unknown> =>
    hosts
      .run(visit(key, ask), async (answered) => {
        if (error) throw error;
        answered();
        return 'done';
      })
      .catch((reason: unknown) => (reason instanceof HostBusy ? 'busy' : reason));
  return { clock, hosts, woken, enter, once };
}

const timeout = () => retry('GitTimeout', 'silent');
const limited = (retryAfterMs?: number) =>
  waiting('GitRateLimited', 'slow down', retryAfterMs === undefined ? {} : { retryAfterMs });

describe('turns', () => {
  it('a host that was never asked gets one visit, then as many as allowed', async () => {
    const { enter, woken } = world();
    const first = await enter('1');
    expect(await enter('2')).toBeUndefined();
    expect(await enter('3')).toBeUndefined();
    expect(await enter('4')).toBeUndefined();
    first?.answered();
    expect(woken).toEqual(['2', '3']);
    expect(await enter('2')).toBeDefined();
    expect(await enter('3')).toBeDefined();
    expect(await enter('5')).toBeUndefined();
    await first?.leave();
    expect(woken).toEqual(['2', '3', '4']);
  });

  it('other hosts, and other ports, are not concerned', async () => {
    const { enter } = world();
    await enter('1');
    expect(await enter('2', { url: URL_B })).toBeDefined();
    expect(await enter('3', { url: 'https://a.example.com:8443/x.git' })).toBeDefined();
    expect(await enter('4', { url: 'https://A.example.com:443/other.git' })).toBeUndefined();
  });

  it('what somebody waits for goes before what polls', async () => {
    const { enter, woken } = world();
    const first = await enter('1');
    await enter('polls');
    await enter('new', { urgent: true });
    await first?.leave();
    expect(woken).toEqual(['new']);
  });

  it('a host that is silent gets one visit at a time until it speaks again', async () => {
    const { enter, once, woken } = world();
    await once('1');
    const open = await Promise.all([enter('2'), enter('3'), enter('4')]);
    expect(await open[0]?.leave(timeout())).toMatchObject({ reason: 'GitTimeout' });
    expect(await enter('5')).toBeUndefined();
    await open[1]?.leave(timeout());
    expect(await enter('6')).toBeUndefined();
    expect(woken).toEqual([]);
    await open[2]?.leave(timeout());
    expect(woken).toEqual(['5']);
    const probe = await enter('5');
    expect(await enter('7')).toBeUndefined();
    probe?.answered();
    expect(woken).toEqual(['5', '6', '7']);
  });

  it.each<[string, PolicyError, boolean]>([
    ['a refusal is an answer', waiting('AuthenticationFailed', 'no'), true],
    ['a missing repository is an answer', waiting('RepositoryNotFound', 'no'), true],
    ['a Secret says nothing about the host', waiting('SecretInvalid', 'no'), false],
    ['nor does a defect of the spec', stalled('RefInvalid', 'no'), false],
    ['a timeout is none', timeout(), false],
  ])('%s', async (_title, error, answers) => {
    const { enter, once } = world();
    await once('1', error);
    await enter('2');
    expect((await enter('3')) !== undefined).toBe(answers);
  });

  it('a slow fetch of a host that answered is not the matter of the others', async () => {
    const { enter } = world();
    const slow = await enter('1');
    slow?.answered();
    await slow?.leave(timeout());
    await enter('2');
    expect(await enter('3')).toBeDefined();
  });

  it('an address that is none is left to whoever uses it', async () => {
    const { enter } = world();
    expect(await enter('1', { url: 'nonsense' })).toBeDefined();
    expect(await enter('2', { url: 'nonsense' })).toBeDefined();
  });
});

describe('pauses', () => {
  it('last as long as the host says, for that caller alone, and nobody asks meanwhile', async () => {
    const { clock, once } = world();
    expect(await once('1', limited(7_000))).toMatchObject({ reason: 'GitRateLimited', retryAfterMs: 7_000 });
    await clock.advance(2_000);
    expect(await once('2')).toMatchObject({ reason: 'GitRateLimited', message: 'slow down', retryAfterMs: 5_000 });
    expect(await once('3', undefined, { caller: 'other/token' })).toBe('done');
    await clock.advance(5_000);
    expect(await once('2')).toBe('done');
  });

  it('last a minute where it says nothing, and twice as long each time, until it answers', async () => {
    const { clock, once } = world();
    const pauses: unknown[] = [];
    for (let n = 0; n < 6; n++) {
      const { retryAfterMs } = (await once('1', limited())) as PolicyError;
      pauses.push(retryAfterMs);
      await clock.advance(retryAfterMs ?? 0);
    }
    expect(pauses).toEqual([60_000, 120_000, 240_000, 480_000, 900_000, 900_000]);
    expect(await once('1')).toBe('done');
    expect(await once('1', limited())).toMatchObject({ retryAfterMs: 60_000 });
  });

  it('count once for visits that end together', async () => {
    const { enter, once, clock } = world();
    await once('1');
    const open = await Promise.all([enter('2'), enter('3')]);
    expect(await open[0]?.leave(limited())).toMatchObject({ retryAfterMs: 60_000 });
    await clock.advance(1_000);
    expect(await open[1]?.leave(limited())).toMatchObject({ retryAfterMs: 59_000 });
  });
});

it('a least time between visits wakes one after the other', async () => {
  const { clock, once, woken } = world({ minIntervalMs: 1_000 });
  expect(await once('1')).toBe('done');
  expect(await once('2')).toBe('busy');
  expect(await once('3')).toBe('busy');
  await clock.advance(1_000);
  expect(woken).toEqual(['2']);
  expect(await once('2')).toBe('done');
  await clock.advance(999);
  expect(woken).toEqual(['2']);
  await clock.advance(1);
  expect(woken).toEqual(['2', '3']);
});
