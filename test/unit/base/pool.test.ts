import { afterEach, describe, expect, test } from 'vitest';
import { WorkerPool } from '../../../src/base/pool.ts';
import type { SkillTree } from '../../../src/protocol/types.ts';
import type { Evaluation } from '../../../src/store/package.types.ts';
import { tasks as realTasks } from '../../../src/worker.ts';
import { eventually } from '../../support/eventually.ts';
import { type make, tasks, type where } from './pool.tasks.ts';

const SMALL = { weight: 100, items: 1 };
const LARGE = { weight: 1024 * 1024, items: 1 };
const signal = new AbortController().signal;

describe('WorkerPool', { timeout: 30_000 }, () => {
  const pools: WorkerPool[] = [];
  const open = (options: Partial<ConstructorParameters<typeof WorkerPool>[0]> = {}) => {
    const pool = new WorkerPool({ tasks, worker: new URL('./pool.tasks.ts', import.meta.url), threads: 1, ...options });
    pools.push(pool);
    return pool;
  };
  const run = (pool: WorkerPool, cost: { weight: number; items: number }) =>
    pool.run<string, ReturnType<typeof where>>('where', 'x', cost, signal);

  afterEach(async () => {
    await Promise.all(pools.splice(0).map((pool) => pool.close()));
  });

  test.each([
    ['below both bounds', { weight: 1024 * 1024 - 1, items: 64 }, false],
    ['of 1 MiB', { weight: 1024 * 1024, items: 1 }, true],
    ['of 65 files', { weight: 1, items: 65 }, true],
  ])('work %s runs where it should', async (_name, cost, threaded) => {
    const pool = open();
    const here = tasks.where('x').threadId;
    const there = await run(pool, cost);
    expect(there.threadId !== here).toBe(threaded);
    expect(pool.threads).toBe(threaded ? 1 : 0);
    expect(there.input).toBe('x');
  });

  test('without threads everything runs here', async () => {
    const pool = open({ threads: 0 });
    expect((await run(pool, LARGE)).threadId).toBe(tasks.where('x').threadId);
  });

  test('a thread sees nothing of the environment, which holds secrets', async () => {
    expect((await run(open(), LARGE)).environment).toEqual([]);
  });

  test('large results arrive whole in both places, and views of shared memory too', async () => {
    const pool = open();
    for (const cost of [SMALL, LARGE]) {
      const { large, view, empty } = await pool.run<number, ReturnType<typeof make>>('make', 5_000_000, cost, signal);
      expect(large.length).toBe(5_000_000);
      expect(large.at(-1)).toBe(7);
      expect(Buffer.from(view).toString()).toBe('pooled');
      expect(empty.length).toBe(0);
    }
  });

  test('idle threads end', async () => {
    const pool = open({ idleMs: 50 });
    await run(pool, LARGE);
    await eventually(() => pool.threads === 0, { what: 'the idle thread to end' });
    expect((await run(pool, LARGE)).input).toBe('x');
  });

  test('an abort ends work that never ends, with the reason of the signal, and the pool goes on', async () => {
    const pool = open();
    const abort = new AbortController();
    const work = pool.run('spin', undefined, LARGE, abort.signal);
    await eventually(() => pool.threads === 1, { what: 'the thread to start' });
    abort.abort(new Error('lease lost'));
    await expect(work).rejects.toThrow('lease lost');
    expect((await run(pool, LARGE)).input).toBe('x');
  });

  test('work that exceeds its deadline is an InternalError that names the task', async () => {
    const pool = open({ timeoutMs: 100 });
    await expect(pool.run('spin', undefined, LARGE, signal)).rejects.toMatchObject({
      policy: 'Retry',
      reason: 'InternalError',
      message: 'the task spin failed in its thread: no answer within 100 ms; the log holds the stack',
    });
  });

  test('a failure in a thread is an InternalError with its message', async () => {
    await expect(open().run('fail', undefined, LARGE, signal)).rejects.toMatchObject({
      reason: 'InternalError',
      message: 'the task fail failed in its thread: no such luck; the log holds the stack',
    });
  });

  test('an unknown task is an InternalError', async () => {
    await expect(open().run('nothing', undefined, SMALL, signal)).rejects.toMatchObject({ reason: 'InternalError' });
  });

  test('an aborted signal starts nothing', async () => {
    const pool = open();
    await expect(pool.run('where', 'x', LARGE, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
    expect(pool.threads).toBe(0);
  });
});

describe('the tasks of the operator', { timeout: 30_000 }, () => {
  const tree = (skill: string): SkillTree => {
    const files = { 'SKILL.md': skill, 'assets/a.bin': Buffer.alloc(2_000_000, 3) };
    return {
      directory: 'pdf',
      path: 'plugins/docs/skills/pdf',
      files: Object.entries(files).map(([path, text]) => {
        const content = Buffer.from(text);
        return { path, mode: '100644', size: content.length, content };
      }),
    };
  };
  const VALID = '---\nname: pdf\ndescription: Reads PDF files.\n---\nBody\n';

  test('evaluate gives the same package in a thread as here, and none for an invalid skill', async () => {
    const pool = new WorkerPool({
      tasks: realTasks,
      worker: new URL('../../../src/worker.ts', import.meta.url),
      threads: 1,
    });
    try {
      const here = await pool.run<SkillTree, Evaluation>('evaluate', tree(VALID), SMALL, signal);
      const there = await pool.run<SkillTree, Evaluation>('evaluate', tree(VALID), LARGE, signal);
      expect(pool.threads).toBe(1);
      expect(there.report).toMatchObject({ valid: true, violations: [] });
      expect(there.report).not.toHaveProperty('files');
      expect(there.built?.digest).toBe(here.built?.digest);
      expect(there.built?.manifestSHA256).toBe(here.built?.manifestSHA256);
      expect(Buffer.compare(there.built?.tar as Uint8Array, here.built?.tar as Uint8Array)).toBe(0);
      const invalid = await pool.run<SkillTree, Evaluation>('evaluate', tree('no frontmatter'), LARGE, signal);
      expect(invalid.report.valid).toBe(false);
      expect(invalid.built).toBeUndefined();
    } finally {
      await pool.close();
    }
  });
});
