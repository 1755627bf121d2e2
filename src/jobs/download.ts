import { readFile } from 'node:fs/promises';
import { rootCertificates } from 'node:tls';
import { type Dispatcher, EnvHttpProxyAgent, request } from 'undici';
import type { Clock } from '../base/clock.ts';
import { withDeadline } from '../base/deadline.ts';
import { messageOf } from '../base/errors.ts';
import { EXIT } from '../build/exits.ts';
import { sha256OfLarge } from '../store/digest.ts';
import { codeOf, JobError } from './failure.ts';

/** How a job reaches the network. */
export interface Network {
  /** PEM file, trusted beside the system's authorities. */
  caFile?: string | undefined;
  httpProxy?: string | undefined;
  httpsProxy?: string | undefined;
  noProxy?: string | undefined;
}

/** What has to arrive. */
export interface Wanted {
  /** For messages: `package.tar`. */
  name: string;
  url: string;
  /** 64 hex digits. */
  sha256: string;
  /** Bytes. */
  size: number;
}

const TRIES = 4;
const FIRST_DELAY_MS = 1000;
const TIMEOUT_MS = 120_000;

/** A pool with the CA bundle and the proxies of the network; to be closed by the caller. */
export async function networkPool({ caFile, httpProxy, httpsProxy, noProxy }: Network): Promise<Dispatcher> {
  const ca = caFile === undefined ? undefined : [...rootCertificates, await readFile(caFile, 'utf8')];
  return new EnvHttpProxyAgent({
    // Empty text, not undefined: the variables of the environment never count.
    httpProxy: httpProxy ?? '',
    httpsProxy: httpsProxy ?? '',
    noProxy: noProxy ?? '',
    ...(ca ? { connect: { ca }, requestTls: { ca } } : {}),
  });
}

const unreachable = (name: string, what: string, cause?: unknown): JobError =>
  new JobError(EXIT.ContextUnreachable, `${name} could not be downloaded: ${what}`, { cause });

function refusal(name: string, status: number): JobError {
  if (status === 403 || status === 404) {
    const why = status === 403 ? 'the URL is not valid any more' : 'the store does not have it';
    return new JobError(EXIT.ContextRefused, `${name} could not be downloaded: ${why} (HTTP ${status})`);
  }
  return unreachable(name, `the store answered HTTP ${status}`);
}

async function attempt({ name, url, size }: Wanted, dispatcher: Dispatcher, signal: AbortSignal): Promise<Buffer> {
  const { statusCode, body } = await request(url, { signal, dispatcher });
  if (statusCode !== 200) {
    await body.dump({ limit: 64 * 1024, signal });
    throw refusal(name, statusCode);
  }
  const bytes = Buffer.alloc(size);
  let at = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (at + chunk.length > size) throw new JobError(EXIT.ContextCorrupt, `${name} is longer than ${size} bytes`);
    at += chunk.copy(bytes, at);
  }
  if (at < size) throw unreachable(name, `it ended after ${at} of ${size} bytes`);
  return bytes;
}

async function patiently(wanted: Wanted, dispatcher: Dispatcher, signal: AbortSignal): Promise<Buffer> {
  try {
    return await withDeadline(signal, TIMEOUT_MS, (bounded) => attempt(wanted, dispatcher, bounded));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof JobError) throw error;
    throw unreachable(wanted.name, codeOf(error) || messageOf(error), error);
  }
}

/**
 * The bytes of one object, verified. Tries again for a minute or so where the network or the server fails.
 * JobError `ContextRefused` (403, 404), `ContextUnreachable` or `ContextCorrupt` (other size or checksum); no message holds the URL.
 */
export async function download(
  wanted: Wanted,
  tools: { dispatcher: Dispatcher; clock: Clock },
  signal: AbortSignal,
): Promise<Uint8Array> {
  for (let tries = 1; ; tries++) {
    try {
      const bytes = await patiently(wanted, tools.dispatcher, signal);
      if ((await sha256OfLarge(bytes)) === wanted.sha256) return bytes;
      throw new JobError(EXIT.ContextCorrupt, `${wanted.name} has another sha256 than the one that was stored`);
    } catch (error) {
      const again = error instanceof JobError && error.exitCode === EXIT.ContextUnreachable && tries < TRIES;
      if (!again) throw error;
    }
    await tools.clock.sleep(FIRST_DELAY_MS * 4 ** (tries - 1), signal);
  }
}
