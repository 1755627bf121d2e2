import { AsyncLocalStorage } from 'node:async_hooks';
import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { simpleGit } from 'simple-git';
import type { Clock } from '../base/clock.ts';
import { DeadlineExceeded } from '../base/deadline.ts';
import { retry, stalled } from '../base/errors.ts';
import { classifyGitError, KILLED } from './errors.ts';
import type { ProxyRoute } from './proxy.ts';
import type { RemoteUrl } from './url.ts';

/** One run of a Git program that talks to a remote. */
export interface GitCall {
  gitPath: string;
  clock: Clock;
  remote: RemoteUrl;
  /** From `remoteEnvironment`. */
  env: Record<string, string>;
  authenticated: boolean;
  /** True when it carries the token of a GitHub App. */
  app?: boolean;
  /** The proxy that its environment names. */
  proxy?: ProxyRoute | undefined;
  /** Wall-clock deadline of the whole process, in milliseconds. */
  timeoutMs: number;
  /** Working directory: private and empty, or the bare repository. */
  cwd: string;
}

/** simple-git does not give its child away; the runtime's own channel does, and the context says whose child it is. */
const owner = new AsyncLocalStorage<{ child?: ChildProcess }>();
subscribe('child_process', (message) => {
  const holder = owner.getStore();
  if (holder && !holder.child) holder.child = (message as { process: ChildProcess }).process;
});

/** After SIGKILL the kernel needs a moment; a process in uninterruptible I/O may need for ever. */
const KILL_WAIT_MS = 2_000;
const MAX_STDERR = 256 * 1024;

/** Kills git with its helpers (git-remote-https, ssh, index-pack): `setsid` made it the leader of a group of its own. */
function killGroup(child: ChildProcess | undefined): void {
  if (child?.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The group is gone already, or setsid has not run yet.
    child.kill('SIGKILL');
  }
}

/** Node gives no exit code when a signal ended the process, whatever the library's types say. */
const ending = (exitCode: number | null) => Buffer.from(exitCode === null ? `\n${KILLED}` : '');

function client(call: GitCall, onData: (bytes: number, stream: 'out' | 'err') => void) {
  const git = simpleGit({
    baseDir: call.cwd,
    binary: ['setsid', call.gitPath],
    trimmed: false,
    // The library takes a killed process without a word for success; and ref names on stdout are no error text.
    errors: (_error, { exitCode, stdErr }) =>
      exitCode === 0 ? undefined : Buffer.concat([...stdErr, ending(exitCode)]),
    allowEnvironment: Object.keys(call.env),
    unsafe: {
      allowUnsafeSshCommand: true,
      allowUnsafeConfigEnvCount: true,
      allowUnsafeHooksPath: true,
      allowUnsafeFsMonitor: true,
      allowUnsafeCredentialHelper: true,
    },
  });
  return git.env(call.env).outputHandler((_command, stdout, stderr) => {
    stdout.on('data', (chunk: Buffer) => onData(chunk.length, 'out'));
    stderr.on('data', (chunk: Buffer) => onData(chunk.length, 'err'));
  });
}

const timedOut = (call: GitCall) =>
  retry(
    'GitTimeout',
    `${call.remote.host}:${call.remote.port} did not finish within ${Math.round(call.timeoutMs / 100) / 10} s: raise spec.timeout, or look at the server`,
  );

/**
 * Runs git and returns its standard output. Whatever happens, the whole process group is dead or dying when it settles.
 * @throws PolicyError by `classifyGitError`; `GitTimeout` at the deadline; the signal's reason on abort.
 */
async function run(
  call: GitCall,
  args: string[],
  maxOutput: number,
  wanted: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted();
  const holder: { child?: ChildProcess } = {};
  const { promise: stopped, reject: stop } = Promise.withResolvers<never>();
  stopped.catch(() => undefined);
  const received = { out: 0, err: 0 };
  const count = (bytes: number, stream: 'out' | 'err') => {
    received[stream] += bytes;
    if (received.out > maxOutput || received.err > MAX_STDERR) {
      stop(
        stalled(
          'RepositoryTooLarge',
          `git printed more than ${maxOutput} bytes: the repository has too many refs; name one branch or tag in spec.ref`,
        ),
      );
    }
  };
  const onAbort = () => stop(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const cancel = call.clock.after(call.timeoutMs, () => stop(new DeadlineExceeded(call.timeoutMs)));
  const work = owner.run(holder, async () => client(call, count).raw(args));
  try {
    return await Promise.race([work, stopped]);
  } catch (error) {
    killGroup(holder.child);
    await settled(work, call.clock);
    throw translated(error, call, wanted, signal);
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
  }
}

async function settled(work: Promise<unknown>, clock: Clock): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(KILL_WAIT_MS, resolve);
  work.then(
    () => resolve(),
    () => resolve(),
  );
  await promise;
  cancel();
}

function translated(error: unknown, call: GitCall, wanted: string | undefined, signal: AbortSignal): unknown {
  if (signal.aborted && error === signal.reason) return error;
  if (error instanceof DeadlineExceeded) return timedOut(call);
  if (!(error instanceof Error) || error.name === 'PolicyError') return error;
  const { remote, authenticated, app, proxy } = call;
  const failure = { remote, authenticated, app, proxy, stderr: error.message };
  return classifyGitError(wanted === undefined ? failure : { ...failure, wanted });
}

/**
 * `git ls-remote --symref` for the given patterns.
 * @param maxOutput bytes of output above which the answer is refused.
 */
export async function lsRemote(
  call: GitCall,
  patterns: string[],
  maxOutput: number,
  signal: AbortSignal,
): Promise<string> {
  return run(call, ['ls-remote', '--symref', '--', call.remote.url, ...patterns], maxOutput, undefined, signal);
}

/** What one shallow fetch brings. */
export interface FetchRequest {
  /** A commit id or a full ref name, checked. */
  source: string;
  /** The ref of the mirror that keeps it and is offered to the server as known the next time. */
  target: string;
  /** Larger blobs stay away where the server supports filters, in bytes. */
  blobLimit: number;
}

/** `git fetch --depth=1` of one commit into the bare repository of `call.env.GIT_DIR`; no tags, no submodules, nothing checked out. */
export async function fetch(call: GitCall, request: FetchRequest, signal: AbortSignal): Promise<void> {
  const args = [
    // Not --quiet: simple-git waits 50 ms more for a process that prints nothing.
    'fetch',
    '--depth=1',
    `--filter=blob:limit=${request.blobLimit}`,
    '--no-tags',
    '--no-write-fetch-head',
    '--no-recurse-submodules',
    '--no-auto-maintenance',
    '--no-show-forced-updates',
    '--force',
    '--',
    call.remote.url,
    `${request.source}:${request.target}`,
  ];
  await run(call, args, MAX_STDERR, request.source, signal);
}
