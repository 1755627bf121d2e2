import { describe, expect, test } from 'vitest';
import { Gate } from '../../../src/store/gate.ts';

const never = new AbortController().signal;

describe('Gate', () => {
  test('lets only as many run at once as it has slots, the others in order', async () => {
    const gate = new Gate(2);
    const order: number[] = [];
    let running = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        gate.run(never, async () => {
          order.push(i);
          most = Math.max(most, ++running);
          await Promise.resolve();
          running--;
        }),
      ),
    );
    expect(most).toBe(2);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test('one who waits leaves at once when its signal aborts, and the slot is not lost', async () => {
    const gate = new Gate(1);
    const first = Promise.withResolvers<void>();
    const busy = gate.run(never, () => first.promise);
    const abort = new AbortController();
    const waiting = gate.run(abort.signal, async () => 'ran');
    abort.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    first.resolve();
    await busy;
    await expect(gate.run(never, async () => 'next')).resolves.toBe('next');
  });

  test('a slot comes back after a failure', async () => {
    const gate = new Gate(1);
    await expect(gate.run(never, async () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await expect(gate.run(never, async () => 'next')).resolves.toBe('next');
  });

  test('an aborted signal starts nothing', async () => {
    await expect(new Gate(1).run(AbortSignal.abort(new Error('gone')), async () => 'ran')).rejects.toThrow('gone');
  });
});
