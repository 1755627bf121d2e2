import { dirname, join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { readVariables, remove } from './disk.ts';
import { localEnvironment } from './environment.ts';
import { Objects } from './objects.ts';

/**
 * One clone of a mirror on disk: it grows by fetches, is read by many, and goes when it was retired and its last reader is done.
 */
export class Generation {
  readonly dir: string;
  readonly objects: Objects;
  /** Commits that were fetched whole. */
  readonly commits = new Set<string>();
  /** Fetches since the clone. */
  fetches = 0;
  /** Bytes of objects now and right after the clone. */
  bytes = 0;
  cloneBytes = 0;
  #readers = 0;
  #retired = false;
  #removed: Promise<void> | undefined;

  readonly #onGone: () => void;

  /** @param onGone called when it begins to leave the disk. */
  constructor(dir: string, gitPath: string, clock: Clock, onGone: () => void) {
    this.dir = dir;
    this.#onGone = onGone;
    // The home directory of every Git process lies beside the mirrors.
    const env = { ...localEnvironment(join(dirname(dir), 'home')), ...readVariables(dir) };
    this.objects = new Objects({ gitPath, env, cwd: dir, clock });
  }

  /** Counts a reader; the returned function, called any number of times, ends it once. */
  lease(): () => Promise<void> {
    this.#readers += 1;
    let open = true;
    return async () => {
      if (!open) return;
      open = false;
      this.#readers -= 1;
      await this.#removeIfDone();
    };
  }

  /** Nobody new reads it; it is removed from disk once the last reader is done. */
  async retire(): Promise<void> {
    this.#retired = true;
    await this.#removeIfDone();
  }

  /** Removes it now, open readers or not (the process ends). */
  async destroy(): Promise<void> {
    this.objects.close();
    this.#onGone();
    this.#removed ??= remove(this.dir);
    await this.#removed;
  }

  async #removeIfDone(): Promise<void> {
    if (this.#retired && this.#readers === 0) await this.destroy();
  }
}
