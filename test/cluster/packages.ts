import { existsSync } from 'node:fs';
import { execOk, isInstalled } from './exec.ts';

/** A program that a Debian package brings. */
export interface Need {
  /** Program and harmless arguments that show that it is there. */
  probe: readonly [file: string, ...args: string[]];
  debianPackage: string;
}

const APT = 'apt-get';
const APT_OPTIONS = ['-q', '-y', '-o', 'DPkg::Lock::Timeout=300'];
const APT_TIMEOUT_MS = 10 * 60_000;

/** What to do about missing packages on this machine. */
export function installAdvice(packages: readonly string[]): string {
  return `apt-get install --no-install-recommends ${packages.join(' ')}`;
}

/** The Debian packages whose program is missing. */
async function missingPackages(needs: readonly Need[], signal: AbortSignal): Promise<string[]> {
  const missing = new Set<string>();
  for (const { probe, debianPackage } of needs) {
    const [file, ...args] = probe;
    if (!(await isInstalled(file, args, signal))) missing.add(debianPackage);
  }
  return [...missing];
}

/** Installs Debian packages as root; elsewhere throws with the one command to run. */
export async function installPackages(
  packages: readonly string[],
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
    throw new Error(
      `This machine lacks ${packages.join(', ')}. Run\n  sudo ${installAdvice(packages)}\n(or the same for your system) and start again.`,
    );
  }
  say(`installing ${packages.join(', ')} with apt-get`);
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const install = [...APT_OPTIONS, 'install', '--no-install-recommends', '--', ...packages];
  try {
    await execOk(APT, install, { signal, env, timeoutMs: APT_TIMEOUT_MS });
  } catch {
    signal.throwIfAborted();
    // A fresh machine has no package lists, an old one has outdated ones.
    await execOk(APT, [...APT_OPTIONS, 'update'], { signal, env, timeoutMs: APT_TIMEOUT_MS });
    await execOk(APT, install, { signal, env, timeoutMs: APT_TIMEOUT_MS });
  }
}

/** Installs the packages of those programs that are missing. */
export async function ensurePrograms(
  needs: readonly Need[],
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const packages = await missingPackages(needs, signal);
  if (packages.length > 0) await installPackages(packages, say, signal);
}
