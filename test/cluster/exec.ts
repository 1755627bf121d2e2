import { spawn } from 'node:child_process';

/** What a finished program left behind. */
export interface Finished {
  /** Exit code; -1 when a signal ended the program. */
  code: number;
  stdout: string;
  stderr: string;
}

interface ExecOptions {
  signal: AbortSignal;
  /** Milliseconds after which the program is killed. */
  timeoutMs?: number;
  cwd?: string;
  /** Added to the environment of this process. */
  env?: Record<string, string>;
  input?: string;
  /** Called with each line that the program writes to stderr. */
  onErrorLine?: (line: string) => void;
}

const MAX_OUTPUT = 4 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 60_000;

/** Keeps the end of what a program writes: the end is where errors stand. */
function collector(): { add: (chunk: Buffer) => void; text: () => string } {
  let text = '';
  return {
    add: (chunk) => {
      text = (text + chunk.toString('utf8')).slice(-MAX_OUTPUT);
    },
    text: () => text,
  };
}

function lineSplitter(onLine: (line: string) => void): (chunk: Buffer) => void {
  let rest = '';
  return (chunk) => {
    const lines = (rest + chunk.toString('utf8')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  };
}

/** Runs a program to its end, without a shell. Rejects only when it cannot be started, is aborted or exceeds its time. */
export async function exec(file: string, args: readonly string[], options: ExecOptions): Promise<Finished> {
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(timeoutMs)]);
  const stdout = collector();
  const stderr = collector();
  const child = spawn(file, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    signal,
    killSignal: 'SIGKILL',
  });
  child.stdout.on('data', stdout.add);
  child.stderr.on('data', stderr.add);
  if (options.onErrorLine) child.stderr.on('data', lineSplitter(options.onErrorLine));
  // A program that does not read its input closes the pipe; its exit code tells what matters.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  const { promise, resolve, reject } = Promise.withResolvers<Finished>();
  child.on('error', (error) => {
    const late = signal.aborted && !options.signal.aborted;
    reject(late ? new Error(`${file} did not finish within ${timeoutMs / 1000} s`, { cause: error }) : error);
  });
  child.on('close', (code) => resolve({ code: code ?? -1, stdout: stdout.text(), stderr: stderr.text() }));
  return await promise;
}

/** Like `exec`, but an exit code other than 0 rejects with the last lines that the program wrote. */
export async function execOk(file: string, args: readonly string[], options: ExecOptions): Promise<string> {
  const { code, stdout, stderr } = await exec(file, args, options);
  if (code === 0) return stdout;
  const said = (stderr.trim() || stdout.trim()).split('\n').slice(-12).join('\n');
  throw new Error(`${[file, ...args].join(' ')} ended with code ${code}:\n${said}`);
}

/** True when the program can be found and started. */
export async function isInstalled(file: string, args: readonly string[], signal: AbortSignal): Promise<boolean> {
  try {
    await exec(file, args, { signal, timeoutMs: 30_000 });
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
