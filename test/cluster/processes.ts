import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { identify, killHard } from './procfs.ts';

interface Program {
  /** Name of the log, the pid file and in messages. */
  name: string;
  file: string;
  args: readonly string[];
  env?: Record<string, string>;
  cwd?: string;
}

interface Running {
  program: Program;
  child: ChildProcess;
  exited: Promise<void>;
}

const LOG_TAIL_LINES = 15;

/** The server programs of one run: each has `log/<name>.log` and, while it runs, `pids/<name>`. */
export class Processes {
  readonly #dir: string;
  readonly #running = new Map<string, Running>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Starts the program in a process group of its own, its output going to its log. */
  start(program: Program): void {
    const log = openSync(this.logFile(program.name), 'a');
    const child = spawn(program.file, program.args, {
      cwd: program.cwd ?? this.#dir,
      env: { ...process.env, ...program.env },
      stdio: ['ignore', log, log],
      detached: true,
    });
    closeSync(log);
    const { promise, resolve } = Promise.withResolvers<void>();
    child.once('error', () => resolve());
    child.once('exit', () => {
      rmSync(this.#pidFile(program.name), { force: true });
      resolve();
    });
    if (child.pid === undefined) throw new Error(`${program.file} cannot be started`);
    const id = identify(child.pid);
    writeFileSync(this.#pidFile(program.name), `${id.pid} ${id.startTime}`);
    this.#running.set(program.name, { program, child, exited: promise });
  }

  /** Ends the program at once: what it keeps is thrown away with the run. */
  async stop(name: string): Promise<void> {
    const running = this.#running.get(name);
    if (!running) return;
    this.#running.delete(name);
    if (running.child.pid !== undefined && running.child.exitCode === null && running.child.signalCode === null) {
      killHard(identify(running.child.pid));
    }
    await running.exited;
  }

  /** Ends the program and starts it again with the same arguments (and so on the same port). */
  async restart(name: string): Promise<void> {
    const running = this.#running.get(name);
    if (!running) throw new Error(`no program ${name} runs; there are ${this.names().join(', ')}`);
    await this.stop(name);
    this.start(running.program);
  }

  /** Pid of a program that was started. */
  pid(name: string): number {
    return this.#running.get(name)?.child.pid ?? -1;
  }

  /** Throws with the end of its log when the program has ended. */
  assertRunning(name: string): void {
    const child = this.#running.get(name)?.child;
    if (child && child.exitCode === null && child.signalCode === null) return;
    throw new Error(`${name} ended; the end of its log:\n${this.logTail(name)}`);
  }

  names(): string[] {
    return [...this.#running.keys()];
  }

  logFile(name: string): string {
    return join(this.#dir, 'log', `${name}.log`);
  }

  logTail(name: string): string {
    const lines = readFileSync(this.logFile(name), 'utf8').trimEnd().split('\n');
    return lines.slice(-LOG_TAIL_LINES).join('\n');
  }

  /** Ends all programs, the last started first. */
  async stopAll(): Promise<void> {
    for (const name of this.names().reverse()) await this.stop(name);
  }

  #pidFile(name: string): string {
    return join(this.#dir, 'pids', name);
  }
}
