import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const RETRY_MS = 500;
const WORD_MS = 15_000;

/** Folder outside the work tree that keeps what is built or installed once per machine. */
function cacheDir(): string {
  const xdg = process.env.XDG_CACHE_HOME;
  const dir = join(xdg && isAbsolute(xdg) ? xdg : join(homedir(), '.cache'), 'skill-operator-test');
  mkdirSync(dir, { recursive: true });
  return dir;
}

/** Short key over everything that decides how a cached thing comes out. */
export function cacheKey(...parts: (string | Buffer)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('hex').slice(0, 16);
}

/**
 * The name is a socket in Linux' abstract namespace: the kernel gives it to one process and frees it when that process ends,
 * however it ends, so there is no stale lock to recognise.
 */
async function tryLock(name: string): Promise<Server | undefined> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<Server | undefined>();
  server.once('error', (error: NodeJS.ErrnoException) =>
    error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
  );
  server.listen(`\0skill-operator-test-${name}`, () => resolve(server));
  return await promise;
}

async function lock(name: string, onWait: (seconds: number) => void, signal: AbortSignal): Promise<Server> {
  const attemptsPerWord = WORD_MS / RETRY_MS;
  for (let attempt = 0; ; attempt++) {
    const server = await tryLock(name);
    if (server) return server;
    if (attempt % attemptsPerWord === 0) onWait((attempt * RETRY_MS) / 1000);
    await delay(RETRY_MS, undefined, { signal });
  }
}

interface CacheEntry {
  /** Name of the entry including its key. */
  name: string;
  /** Told now and then, with the seconds waited, while another run makes the entry. */
  onWait: (seconds: number) => void;
  /** Fills the given empty folder. */
  make: (dir: string, signal: AbortSignal) => Promise<void>;
}

/** Path of a cached folder; makes it first if it is not there: by one run at a time, and complete or not at all. */
export async function cached(entry: CacheEntry, signal: AbortSignal, dir = cacheDir()): Promise<string> {
  const path = join(dir, entry.name);
  if (existsSync(path)) return path;
  const held = await lock(cacheKey(path), entry.onWait, signal);
  try {
    if (existsSync(path)) return path;
    const temporary = mkdtempSync(`${path}.new-`);
    try {
      await entry.make(temporary, signal);
      renameSync(temporary, path);
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
    return path;
  } finally {
    held.close();
  }
}
