import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { withDeadline } from '../base/deadline.ts';
import { redact } from '../base/redact.ts';
import { EXIT, type ExitCode } from '../build/exits.ts';
import type { Network } from './download.ts';
import { JobError } from './failure.ts';

/** One push of a verified layout. */
export interface SkopeoPush {
  /** Program; a bare name is looked up in the usual directories. */
  program: string;
  /** Directory of the layout with one image. */
  layout: string;
  /** `<host>/<repository>:<tag>`. */
  destination: string;
  /** A Docker config with the one credential that is needed, or none. */
  authFile: string;
  /** Directory for skopeo's own files. */
  scratch: string;
  insecure: boolean;
  /** Directory with ca.crt, trusted beside the system's authorities. */
  certificates?: string | undefined;
  network: Network;
}

const TIMEOUT_MS = 15 * 60_000;
const MAX_OUTPUT = 64 * 1024;
const GRACE_MS = 5000;

/** Nothing of this process' environment; programs would find credentials and settings there that are not meant for them. */
function environment({ scratch, network }: SkopeoPush): Record<string, string> {
  const { httpProxy, httpsProxy, noProxy } = network;
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: scratch,
    TMPDIR: scratch,
    XDG_RUNTIME_DIR: scratch,
    ...(httpProxy ? { HTTP_PROXY: httpProxy } : {}),
    ...(httpsProxy ? { HTTPS_PROXY: httpsProxy } : {}),
    ...(noProxy ? { NO_PROXY: noProxy } : {}),
  };
}

const digestFile = ({ scratch }: SkopeoPush): string => `${scratch}/digest`;

function args(push: SkopeoPush): string[] {
  return [
    // The layout was verified by us; a policy file is not needed and not there.
    '--insecure-policy',
    'copy',
    // The digest that was verified is the one that is pushed: no recompression, no other manifest format.
    '--preserve-digests',
    '--quiet',
    `--digestfile=${digestFile(push)}`,
    `--dest-authfile=${push.authFile}`,
    `--dest-tls-verify=${!push.insecure}`,
    ...(push.certificates ? [`--dest-cert-dir=${push.certificates}`] : []),
    '--',
    `oci:${push.layout}`,
    `docker://${push.destination}`,
  ];
}

/** Runs the program to its end; resolves with exit code and the end of what it wrote. */
async function run(push: SkopeoPush, signal: AbortSignal): Promise<{ code: number; output: string }> {
  const child = spawn(push.program, args(push), {
    cwd: push.scratch,
    env: environment(push),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const add = (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(-MAX_OUTPUT);
  };
  child.stdout.on('data', add);
  child.stderr.on('data', add);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  child.once('error', reject);
  child.once('close', (code) => resolve(code ?? -1));
  let kill: NodeJS.Timeout | undefined;
  const stop = () => {
    child.kill('SIGTERM');
    kill = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
  };
  signal.addEventListener('abort', stop, { once: true });
  try {
    return { code: await promise, output };
  } finally {
    clearTimeout(kill);
    signal.removeEventListener('abort', stop);
  }
}

const TOO_LARGE = /\b413\b|request entity too large|size.{0,20}exceed/i;
const DENIED =
  /unauthorized|authentication required|denied|forbidden|\b40[13]\b|invalid username|x509|certificate|server gave HTTP response|name (?:invalid|unknown)|NAME_(?:INVALID|UNKNOWN)|invalid reference|repository .{0,80}not found|TAG_INVALID|manifest invalid/i;

/** The meaning of skopeo's words; everything unknown may heal by itself. Pure. */
export function pushExit(output: string): ExitCode {
  // "toomanyrequests: … rate limit … denied" and the like are no matter of rights.
  if (/toomanyrequests|\b429\b|\b5\d\d\b/i.test(output)) return EXIT.PushUnavailable;
  if (TOO_LARGE.test(output)) return EXIT.ImageTooLarge;
  return DENIED.test(output) ? EXIT.PushDenied : EXIT.PushUnavailable;
}

/** The last thing that skopeo said, without its log format. */
function lastWords(output: string): string {
  const line = redact(output).trim().split('\n').at(-1) ?? '';
  const quoted = /\bmsg="((?:[^"\\]|\\.)*)"/.exec(line)?.[1];
  return (quoted?.replaceAll(/\\(.)/g, '$1') ?? line).slice(0, 500) || 'skopeo said nothing';
}

/** Pushes the image and answers with the digest that went out. JobError `PushDenied`, `PushUnavailable` or `ImageTooLarge`. */
export async function skopeoPush(push: SkopeoPush, signal: AbortSignal): Promise<string> {
  const { code, output } = await withDeadline(signal, TIMEOUT_MS, (bounded) => run(push, bounded)).catch((error) => {
    signal.throwIfAborted();
    throw new JobError(EXIT.PushUnavailable, `skopeo did not do its work: ${(error as Error).message}`, {
      cause: error,
    });
  });
  if (code !== 0) throw new JobError(pushExit(output), `the push failed: ${lastWords(output)}`);
  return (await readFile(digestFile(push), 'utf8')).trim();
}
