/** Large pure work in threads of its own; the only file that knows piscina. */
import { Piscina, transferableSymbol, valueSymbol } from 'piscina';
import type { Compute } from './compute.ts';
import { withDeadline } from './deadline.ts';
import { retry } from './errors.ts';

/** The pure functions by name, as src/worker.ts exports them. */
export type Tasks = Readonly<Record<string, (input: never) => unknown>>;

/** How the pool is set up. */
export interface PoolOptions {
  /** Run in this thread when the work is small. */
  tasks: Tasks;
  /** The module that exports the same functions: `worker.ts` unbuilt, `worker.js` in a bundle. */
  worker: URL;
  /** Threads at most; 0: everything runs in this thread. */
  threads: number;
  /** Milliseconds after which an idle thread ends and gives its memory back. Default 10,000. */
  idleMs?: number;
  /** Deadline of one piece of work in milliseconds, waiting included. Default 120,000. */
  timeoutMs?: number;
}

/** Work below both bounds runs in the caller's thread (docs/architecture.md, "Rooms"): a hop costs more than it. */
const INLINE_WEIGHT = 1024 * 1024;
const INLINE_ITEMS = 64;

/** `Compute` on a pool of worker threads that starts empty and shrinks to nothing when idle. */
export class WorkerPool implements Compute {
  readonly #tasks: Tasks;
  readonly #timeoutMs: number;
  readonly #pool: Piscina | undefined;

  constructor(options: PoolOptions) {
    this.#tasks = options.tasks;
    this.#timeoutMs = options.timeoutMs ?? 120_000;
    if (options.threads > 0) {
      this.#pool = new Piscina({
        filename: options.worker.href,
        minThreads: 0,
        maxThreads: options.threads,
        idleTimeout: options.idleMs ?? 10_000,
        // The environment holds the store's credentials; pure functions need none of it.
        env: {},
      });
    }
  }

  /** Threads alive now. */
  get threads(): number {
    return this.#pool?.threads.length ?? 0;
  }

  /**
   * Runs the named function; its result must be structured-cloneable.
   * Abort and deadline end the thread that is at it. Throws `InternalError` for an unknown name, a thread that died or a late result.
   */
  async run<I, O>(task: string, input: I, cost: { weight: number; items: number }, signal: AbortSignal): Promise<O> {
    signal.throwIfAborted();
    const fn = this.#tasks[task];
    if (!fn) throw retry('InternalError', `there is no task ${task}; this is a defect of the operator`);
    const pool = this.#pool;
    if (!pool || (cost.weight < INLINE_WEIGHT && cost.items <= INLINE_ITEMS)) return fn(input as never) as O;
    try {
      return await withDeadline(signal, this.#timeoutMs, (inner) => pool.run(input, { name: task, signal: inner }));
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const problem = error instanceof Error ? error.message : String(error);
      throw retry('InternalError', `the task ${task} failed in its thread: ${problem}; the log holds the stack`, {
        cause: error,
      });
    }
  }

  /** Ends all threads; work under way fails. */
  async close(): Promise<void> {
    await this.#pool?.destroy();
  }
}

/**
 * Makes a task whose result changes threads with its large buffers moved, not copied; in the caller's thread nothing changes.
 * Only buffers that are nobody else's memory are moved; views of shared memory are copied with the rest.
 */
export function moving<I, O>(fn: (input: I) => O, buffers: (output: O) => readonly Uint8Array[]): (input: I) => O {
  return (input) => {
    const output = fn(input);
    if (!Piscina.isWorkerThread) return output;
    const whole = buffers(output).filter((view) => view.byteLength > 0 && view.byteLength === view.buffer.byteLength);
    const message = { [transferableSymbol]: whole.map((view) => view.buffer), [valueSymbol]: output };
    // The pool unwraps it on the other side, so callers see the output itself.
    return Piscina.move(message as never) as O;
  };
}
