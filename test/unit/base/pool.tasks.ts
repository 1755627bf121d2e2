/** Tasks of the pool's test, run in its threads. */
import { isMainThread, threadId } from 'node:worker_threads';
import { moving } from '../../../src/base/pool.ts';

/** Says where it ran and what it saw. */
export const where = (input: unknown) => ({ input, isMainThread, threadId, environment: Object.keys(process.env) });

/** Never ends by itself. */
export const spin = (): never => {
  for (;;);
};

/** Fails. */
export const fail = (): never => {
  throw new TypeError('no such luck');
};

/** Returns one large buffer, one view of a shared one, and one empty one. */
export const make = moving(
  (size: number) => ({ large: new Uint8Array(size).fill(7), view: Buffer.from('pooled'), empty: new Uint8Array(0) }),
  ({ large, view, empty }) => [large, view, empty],
);

/** The table as the pool takes it. */
export const tasks = { where, spin, fail, make };
