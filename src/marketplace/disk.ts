import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Settings of a mirror, rewritten before each fetch: git adds a promisor section that would make later reads fetch. */
const CONFIG = '[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n';
const HEAD = 'ref: refs/heads/none\n';

/**
 * Lays out what `git init --bare` would, twice: `repo` is fetched into, `read` sees only its objects.
 * So a reader never meets the promisor settings of a running fetch, and a filtered blob is simply missing to it.
 */
export async function layOut(dir: string): Promise<void> {
  for (const sub of ['repo', 'read']) {
    await mkdir(join(dir, sub, 'objects', 'pack'), { recursive: true, mode: 0o700 });
    await mkdir(join(dir, sub, 'refs'), { recursive: true });
    await writeFile(join(dir, sub, 'HEAD'), HEAD);
  }
  await writeFile(join(dir, 'read', 'config'), CONFIG);
  await resetConfig(dir);
}

/** Puts the mirror's settings back to the constant text. */
export async function resetConfig(dir: string): Promise<void> {
  await writeFile(join(dir, 'repo', 'config'), CONFIG);
}

/** Environment variables that make git use the mirror for fetching. */
export const fetchVariables = (dir: string) => ({ GIT_DIR: join(dir, 'repo') });
/** Environment variables that make git read the mirror's objects and nothing else of it. */
export const readVariables = (dir: string) => ({
  GIT_DIR: join(dir, 'read'),
  GIT_OBJECT_DIRECTORY: join(dir, 'repo', 'objects'),
});

async function files(dir: string): Promise<string[]> {
  try {
    const entries = await readdir(dir, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  } catch {
    // Removed meanwhile.
    return [];
  }
}

/** Bytes of the objects of a mirror, half-received packs included. */
export async function sizeOf(dir: string): Promise<number> {
  let total = 0;
  for (const file of await files(join(dir, 'repo', 'objects'))) {
    total += await stat(file).then(
      ({ size }) => size,
      () => 0,
    );
  }
  return total;
}

/** Whether a fetch that ended badly left anything behind: a half-received pack, a lock, a kept pack. */
export async function hasRemains(dir: string): Promise<boolean> {
  const all = await files(join(dir, 'repo'));
  return all.some((file) => /\.(?:lock|keep)$|\/tmp_[^/]*$/.test(file));
}

/** Removes a directory, whatever is in it. */
export async function remove(dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true, maxRetries: 3 });
}
