import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import type { Clock } from '../base/clock.ts';
import { retry } from '../base/errors.ts';
import { BatchParser, type BatchReply } from './batchparser.ts';

/** How to start `git cat-file` on one repository. */
export interface ObjectsOptions {
  gitPath: string;
  /** From `localEnvironment`, with GIT_DIR (and GIT_OBJECT_DIRECTORY). */
  env: Record<string, string>;
  cwd: string;
  clock: Clock;
  /** Without a byte for this long while requests wait, the child is killed. Milliseconds. */
  stallMs?: number;
  /** Without requests for this long, the child is ended; the next request starts another. Milliseconds. */
  idleMs?: number;
}

interface Request {
  line: string;
  tries: number;
  resolve: (reply: BatchReply) => void;
  reject: (error: unknown) => void;
}

const STALL_MS = 30_000;
const IDLE_MS = 10_000;
const MAX_TRIES = 2;
/** Unanswered requests given to git at once: enough to hide the pipe, few enough to lose on a crash. */
const WINDOW = 512;
const REVISION = /^[0-9a-f]{40}(?:\^\{tree\})?$/;

const broken = (why: string) =>
  retry(
    'MirrorCorrupt',
    `objects of the local mirror cannot be read (${why}): the operator fetches them anew by itself`,
  );

/**
 * One `git cat-file --batch-command` child that answers any number of callers in order.
 * It starts on the first request, again after a crash (open requests are asked once more), and ends when idle.
 * Replies are awaited under the caller's signal; an aborted caller's reply is read and dropped.
 */
export class Objects {
  readonly #options: ObjectsOptions;
  #child: ChildProcessWithoutNullStreams | undefined;
  /** Not yet written. */
  #queue: Request[] = [];
  /** Written, in the order of the replies. */
  #sent: Request[] = [];
  #scheduled = false;
  #closed = false;
  #cancelStall: () => void = () => undefined;
  #cancelIdle: () => void = () => undefined;

  constructor(options: ObjectsOptions) {
    this.#options = options;
  }

  /** The child's process id while one runs, for diagnostics. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Kind and size of an object, or undefined when the repository does not hold it. */
  async info(oid: string, signal: AbortSignal): Promise<{ type: string; size: number } | undefined> {
    const reply = await this.#ask('info', oid, signal);
    return reply.found ? { type: reply.type, size: reply.size } : undefined;
  }

  /**
   * Bytes of an object; undefined when the repository does not hold it.
   * `content` is absent above the caps of `BatchParser`; ask `info` first where a lower one applies.
   */
  async contents(
    oid: string,
    signal: AbortSignal,
  ): Promise<{ type: string; size: number; content?: Buffer } | undefined> {
    const reply = await this.#ask('contents', oid, signal);
    return reply.found ? reply : undefined;
  }

  /** Ends the child; open and later requests fail. */
  close(): void {
    this.#closed = true;
    this.#drop();
    for (const request of [...this.#sent.splice(0), ...this.#queue.splice(0)])
      request.reject(broken('the reader was closed'));
  }

  async #ask(verb: 'info' | 'contents', revision: string, signal: AbortSignal): Promise<BatchReply> {
    signal.throwIfAborted();
    if (!REVISION.test(revision)) throw broken(`"${revision.slice(0, 60)}" is no object id`);
    if (this.#closed) throw broken('the reader was closed');
    const { promise, resolve, reject } = Promise.withResolvers<BatchReply>();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#queue.push({ line: `${verb} ${revision}\n`, tries: 0, resolve, reject });
    this.#schedule();
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Requests of one turn of the event loop go out in one write. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    const room = WINDOW - this.#sent.length;
    if (this.#closed || room <= 0 || this.#queue.length === 0) return;
    const batch = this.#queue.splice(0, room);
    for (const request of batch) request.tries += 1;
    if (this.#sent.length === 0) this.#watch();
    this.#sent.push(...batch);
    this.#cancelIdle();
    this.#start().stdin.write(`${batch.map((request) => request.line).join('')}flush\n`);
  }

  #start(): ChildProcessWithoutNullStreams {
    if (this.#child) return this.#child;
    const { gitPath, env, cwd } = this.#options;
    const child = spawn(gitPath, ['cat-file', '--batch-command', '--buffer'], {
      env,
      cwd,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    let stderr = '';
    const parser = new BatchParser(
      (reply) => this.#answer(child, reply),
      () => this.#sent[0]?.line.startsWith('contents ') ?? false,
    );
    const lost = (why: string) => this.#lost(child, why);
    child.stdout.on('data', (chunk: Buffer) => {
      if (this.#child !== child) return;
      this.#watch();
      const problem = parser.push(chunk);
      if (problem) lost(problem);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (stderr.length < 500) stderr += chunk.toString('latin1');
    });
    child.stdin.on('error', () => lost('its pipe broke'));
    child.on('error', (error) => lost(error.message));
    child.on('close', (code, killed) =>
      lost(stderr.trim().split('\n').at(-1) || `git cat-file ended with ${killed ?? code}`),
    );
    return child;
  }

  #answer(child: ChildProcessWithoutNullStreams, reply: BatchReply): void {
    if (this.#child !== child) return;
    this.#sent.shift()?.resolve(reply);
    if (this.#queue.length > 0) this.#schedule();
    else if (this.#sent.length === 0) this.#rest();
  }

  #rest(): void {
    this.#cancelStall();
    this.#cancelIdle();
    this.#cancelIdle = this.#options.clock.after(this.#options.idleMs ?? IDLE_MS, () => this.#drop());
  }

  #watch(): void {
    this.#cancelStall();
    this.#cancelStall = this.#options.clock.after(this.#options.stallMs ?? STALL_MS, () => {
      if (this.#child) this.#lost(this.#child, 'git cat-file stopped answering');
    });
  }

  #drop(): void {
    this.#cancelStall();
    this.#cancelIdle();
    const child = this.#child;
    this.#child = undefined;
    child?.kill('SIGKILL');
  }

  #lost(child: ChildProcessWithoutNullStreams, why: string): void {
    if (this.#child !== child) return;
    this.#drop();
    const open = this.#sent.splice(0);
    const again = open.filter((request) => request.tries < MAX_TRIES);
    for (const request of open) if (request.tries >= MAX_TRIES) request.reject(broken(why));
    this.#queue.unshift(...again);
    if (this.#queue.length > 0) this.#schedule();
  }
}
