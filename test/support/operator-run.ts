import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { K8s, type K8sObject } from './k8s.ts';

/** One line of the operator's log. */
export type LogLine = { level: string; time: string; msg: string } & Record<string, unknown>;

const STOP_MS = 20_000;
const TAIL_LINES = 25;

/** Access to the API whose waits end with the log's tail when the operator dies meanwhile, not with a deadline. */
export class WatchedK8s extends K8s {
  readonly #died: () => Promise<never>;

  constructor(kubeconfig: string, died: () => Promise<never>) {
    super(kubeconfig);
    this.#died = died;
  }

  override waitFor(...args: Parameters<K8s['waitFor']>): Promise<K8sObject> {
    return Promise.race([super.waitFor(...args), this.#died()]);
  }

  override waitGone(...args: Parameters<K8s['waitGone']>): Promise<void> {
    return Promise.race([super.waitGone(...args), this.#died()]);
  }
}

/** One run of the operator's program. */
export class Run {
  readonly child: ChildProcess;
  readonly lines: LogLine[] = [];
  readonly #text: string[] = [];
  readonly died: Promise<never>;
  readonly closed: Promise<number | string | null>;
  /** Set before the end that a test asked for. */
  expected = false;

  constructor(args: string[], env: Record<string, string>) {
    this.child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      if (stream) createInterface({ input: stream }).on('line', (line) => this.#take(line));
    }
    this.closed = once(this.child, 'close').then(([code, signal]) => code ?? signal);
    this.died = this.closed.then((code) => {
      if (this.expected) return new Promise<never>(() => undefined);
      throw new Error(`the operator ended by itself with ${code}; its last lines:\n${this.tail()}`);
    });
    this.died.catch(() => undefined);
  }

  #take(line: string): void {
    this.#text.push(line);
    if (line.startsWith('{')) this.lines.push(JSON.parse(line) as LogLine);
  }

  tail(): string {
    return this.#text.slice(-TAIL_LINES).join('\n');
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | string | null> {
    this.expected = true;
    this.child.kill(signal);
    const timer = setTimeout(() => this.child.kill('SIGKILL'), STOP_MS);
    try {
      return await this.closed;
    } finally {
      clearTimeout(timer);
    }
  }
}
