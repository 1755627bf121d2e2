import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { exec, execOk } from '../exec.ts';
import { installAdvice } from '../packages.ts';

const TIMEOUT_MS = 5 * 60_000;

/** Unpacks a Debian package into a folder without installing it; returns the folder. */
export async function unpackPackage(name: string, dir: string, signal: AbortSignal): Promise<string> {
  const download = async () =>
    await exec('apt-get', ['-q', 'download', '--', name], { signal, cwd: dir, timeoutMs: TIMEOUT_MS });
  let got = await download();
  if (got.code !== 0) {
    // A fresh machine has no package lists, an old one has outdated ones.
    await execOk('apt-get', ['-q', 'update'], { signal, timeoutMs: TIMEOUT_MS });
    got = await download();
  }
  const file = readdirSync(dir).find((entry) => entry.startsWith(`${name}_`) && entry.endsWith('.deb'));
  if (got.code !== 0 || file === undefined) {
    throw new Error(`The Debian package ${name} cannot be had: ${got.stderr.trim()}\nTry ${installAdvice([name])}`);
  }
  const root = join(dir, name);
  await execOk('dpkg-deb', ['-x', join(dir, file), root], { signal });
  return root;
}
