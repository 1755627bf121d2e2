import { randomInt } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { identify, isAlive } from './procfs.ts';
import { baseDir } from './run-dir.ts';

// Below the range from which the kernel takes local ports for outgoing connections (32768 on Linux), above the usual services.
const LOWEST = 20_000;
const HIGHEST = 32_000;
const ATTEMPTS = 200;

/** The message that programs print when their port is in use. */
export const PORT_TAKEN = /address already in use|EADDRINUSE|bind: |Cannot bind/i;

/** Reserves a port for this process with a file, so that two runs side by side never pick the same one. */
function reserve(file: string): boolean {
  const { pid, startTime } = identify(process.pid);
  try {
    writeFileSync(file, `${pid} ${startTime}`, { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  try {
    const [otherPid, otherStart] = readFileSync(file, 'utf8').split(' ');
    if (otherPid && otherStart && !isAlive({ pid: Number(otherPid), startTime: otherStart })) rmSync(file);
  } catch {
    // The owner removed it meanwhile. Either way this port is left alone now.
  }
  return false;
}

async function isFree(address: string, port: number): Promise<boolean> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  server.once('error', () => resolve(false));
  server.listen(port, address, () => server.close(() => resolve(true)));
  return await promise;
}

/** TCP ports of one run; `release` gives them back. */
export class Ports {
  readonly #address: () => string;
  readonly #files = new Set<string>();

  /** `address` tells what the run listens on, the loopback address by default. */
  constructor(address: () => string = () => '127.0.0.1') {
    this.#address = address;
  }

  /** A port of the run's address that nobody listens on and no other run has reserved. */
  async take(): Promise<number> {
    const dir = join(baseDir(), 'ports');
    mkdirSync(dir, { recursive: true });
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const port = randomInt(LOWEST, HIGHEST);
      const file = join(dir, String(port));
      if (!reserve(file)) continue;
      this.#files.add(file);
      if (await isFree(this.#address(), port)) return port;
    }
    throw new Error(
      `No free port between ${LOWEST} and ${HIGHEST} on ${this.#address()}: end the programs that hold them.`,
    );
  }

  release(): void {
    for (const file of this.#files) rmSync(file, { force: true });
    this.#files.clear();
  }
}
