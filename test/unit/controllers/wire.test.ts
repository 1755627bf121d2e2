import { describe, expect, it } from 'vitest';
import { PolicyError, retry, waiting } from '../../../src/base/errors.ts';
import { Wire } from '../../../src/controllers/skill/wire.ts';
import { FakeClock } from '../kube/fake-clock.ts';

const down = () => Promise.reject(retry('StoreUnavailable', 'the S3 store is down'));
const up = () => Promise.resolve('stored');

function setup() {
  const clock = new FakeClock();
  const woken: string[] = [];
  const wire = new Wire(clock, (key) => woken.push(key));
  return { clock, woken, wire };
}

/** `go`, or reason, policy and delay of the refusal. */
function enter(wire: Wire, key: string): string {
  try {
    wire.enter(key);
    return 'go';
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    return `${error.policy} ${error.reason} ${error.retryAfterMs}`;
  }
}

const failure = async (call: Promise<unknown>): Promise<PolicyError> => {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(PolicyError);
  return error as PolicyError;
};

describe('Wire', () => {
  it('lets everybody through while it is up', async () => {
    const { wire, woken } = setup();
    expect([enter(wire, 'a'), await wire.run('a', up), enter(wire, 'b'), woken]).toEqual(['go', 'stored', 'go', []]);
  });

  it('turns a failure of the store into one that is tried again after a second', async () => {
    const { wire } = setup();
    const error = await failure(wire.run('a', down));
    expect([error.policy, error.reason, error.retryAfterMs, error.message]).toEqual([
      'Waiting',
      'StoreUnavailable',
      1_000,
      'the S3 store is down',
    ]);
  });

  it.each([
    'StoreUnavailable',
    'StoreTimeout',
    'StoreAccessDenied',
    'StoreBucketNotFound',
    'StoreClockSkew',
    'StoreConfigInvalid',
  ] as const)('is down for all after %s', async (reason) => {
    const { wire } = setup();
    await failure(wire.run('a', () => Promise.reject(waiting(reason, 'no'))));
    expect(enter(wire, 'b')).toBe(`Waiting ${reason} 60000`);
  });

  it('stays up when one package alone is at fault, or the code', async () => {
    const { wire } = setup();
    const corrupt = waiting('StoreCorrupt', 'this package');
    expect(await failure(wire.run('a', () => Promise.reject(corrupt)))).toBe(corrupt);
    await expect(wire.run('a', () => Promise.reject(new TypeError('defect')))).rejects.toThrow(TypeError);
    expect(enter(wire, 'b')).toBe('go');
  });

  it('lets one key per second try, whoever it is', async () => {
    const { wire, clock } = setup();
    await failure(wire.run('a', down));
    expect([enter(wire, 'b'), enter(wire, 'c')]).toEqual(Array(2).fill('Waiting StoreUnavailable 60000'));
    await clock.advance(999);
    expect(enter(wire, 'b')).toContain('Waiting');
    await clock.advance(1);
    expect([enter(wire, 'b'), enter(wire, 'c')]).toEqual(['go', 'Waiting StoreUnavailable 60000']);
    await failure(wire.run('b', down));
    await clock.advance(999);
    expect(enter(wire, 'a')).toContain('Waiting');
  });

  it('makes at most one try a second out of a hundred keys that keep asking for a minute', async () => {
    const { wire, clock } = setup();
    await failure(wire.run('key-0', down));
    let tries = 0;
    for (let ms = 0; ms < 60_000; ms += 250) {
      await clock.advance(250);
      for (let key = 0; key < 100; key++) {
        if (enter(wire, `key-${key}`) !== 'go') continue;
        tries++;
        await failure(wire.run(`key-${key}`, down));
      }
    }
    expect(tries).toBe(60);
  });

  it('wakes everybody at the first success, once', async () => {
    const { wire, clock, woken } = setup();
    await failure(wire.run('a', down));
    for (const key of ['b', 'c']) enter(wire, key);
    await clock.advance(1_000);
    wire.enter('a');
    await wire.run('a', up);
    expect(woken.sort()).toEqual(['a', 'b', 'c']);
    await wire.run('a', up);
    expect(woken).toHaveLength(3);
    expect(enter(wire, 'd')).toBe('go');
  });

  it('does not wake a key that is gone', async () => {
    const { wire, woken } = setup();
    await failure(wire.run('a', down));
    enter(wire, 'b');
    wire.forget('b');
    await wire.run('a', up);
    expect(woken).toEqual(['a']);
  });

  it('shows the newest failure', async () => {
    const { wire, clock } = setup();
    await failure(wire.run('a', down));
    await clock.advance(1_000);
    await failure(wire.run('a', () => Promise.reject(waiting('StoreAccessDenied', 'wrong key'))));
    expect(enter(wire, 'b')).toBe('Waiting StoreAccessDenied 60000');
  });
});
