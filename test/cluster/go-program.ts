import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cached, cacheKey } from './cache.ts';
import type { Host } from './component.ts';
import { exec, execOk, isInstalled } from './exec.ts';

const HERE = dirname(fileURLToPath(import.meta.url));
const BUILD_ENV = { CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly' };
const BUILD_TIMEOUT_MS = 45 * 60_000;
const PROGRESS_MS = 15_000;
const GO_NEEDED: readonly [number, number] = [1, 26];

/** A program that is compiled from Go modules, once per machine. */
interface GoProgram {
  /** Name of the binary, and the beginning of the cache entry's. */
  name: string;
  /** Folder beside this file with its go.mod. */
  folder: string;
  /** The files in there that decide how it comes out. */
  files: readonly string[];
  /** Package to compile: `.` or an import path of a module in go.mod. */
  package: string;
  /** Flags of `go build`. */
  flags: readonly string[];
  /** What it is, in a sentence: "compiling <what>". */
  what: string;
  /** How long it takes on 2 cores, like `about 7 minutes`. */
  takes: string;
  /** What else the person can do when Go is missing or too old. */
  waysAround: string;
}

/** Throws a friendly error unless `go version` printed a new enough release. */
export function checkGoVersion(output: string, what: string, waysAround: string): void {
  const [, major, minor] = /\bgo(\d+)\.(\d+)/.exec(output) ?? [];
  const found = [Number(major), Number(minor)] as const;
  const enough = found[0] > GO_NEEDED[0] || (found[0] === GO_NEEDED[0] && found[1] >= GO_NEEDED[1]);
  if (!enough) throw new Error(`Go ${major}.${minor} is too old to compile ${what}. ${waysAround}`);
}

async function requireGo({ what, waysAround }: GoProgram, signal: AbortSignal): Promise<void> {
  if (!(await isInstalled('go', ['version'], signal))) {
    throw new Error(`Once per machine the tests compile ${what}, and Go is not installed. ${waysAround}`);
  }
  const { stdout } = await exec('go', ['version'], { signal });
  checkGoVersion(stdout, what, waysAround);
}

async function build(program: GoProgram, dir: string, host: Pick<Host, 'say'>, signal: AbortSignal): Promise<void> {
  await requireGo(program, signal);
  const { what, takes } = program;
  const began = performance.now();
  let now = 'fetching modules';
  let packages = 0;
  const report = () => {
    const seconds = Math.round((performance.now() - began) / 1000);
    host.say(`compiling ${what}, once per machine: ${seconds} s, ${packages} packages, ${now}`);
  };
  host.say(`compiling ${what}, once per machine; ${takes} on 2 cores`);
  const timer = setInterval(report, PROGRESS_MS);
  try {
    await execOk('go', ['build', '-v', '-o', join(dir, program.name), ...program.flags, program.package], {
      signal,
      cwd: join(HERE, program.folder),
      env: BUILD_ENV,
      timeoutMs: BUILD_TIMEOUT_MS,
      onErrorLine: (line) => {
        now = line.trim();
        if (!line.startsWith('go: ')) packages++;
      },
    });
    report();
  } finally {
    clearInterval(timer);
  }
}

/** Path of the program's binary; compiled first if need be. Versions, flags, sources and platform decide the cache entry. */
export async function ensureGoProgram(
  program: GoProgram,
  host: Pick<Host, 'say'>,
  signal: AbortSignal,
): Promise<string> {
  const files = program.files.map((name) => readFileSync(join(HERE, program.folder, name)));
  const key = cacheKey(...program.flags, JSON.stringify(BUILD_ENV), process.platform, process.arch, ...files);
  const dir = await cached(
    {
      name: `${program.name}-${key}`,
      onWait: (seconds) => host.say(`another run compiles ${program.what}; waiting for it since ${seconds} s`),
      make: (into) => build(program, into, host, signal),
    },
    signal,
  );
  return join(dir, program.name);
}
