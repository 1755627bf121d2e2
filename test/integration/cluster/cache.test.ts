import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cached } from '../../cluster/cache.ts';

describe('the cache of what is built once per machine', () => {
  let dir = '';
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'skill-operator-cache-'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));
  const { signal } = new AbortController();

  test('makes an entry once for two runs side by side, and tells the second that it waits', async () => {
    const { promise: mayFinish, resolve: finish } = Promise.withResolvers<void>();
    let made = 0;
    let waited = 0;
    const entry = {
      name: 'thing-1',
      onWait: () => {
        waited++;
        finish();
      },
      make: async (into: string) => {
        made++;
        await mayFinish;
        expect(existsSync(join(dir, 'thing-1'))).toBe(false);
        writeFileSync(join(into, 'file'), 'whole');
      },
    };
    const paths = await Promise.all([cached(entry, signal, dir), cached(entry, signal, dir)]);
    expect(paths).toEqual([join(dir, 'thing-1'), join(dir, 'thing-1')]);
    expect([made, waited]).toEqual([1, 1]);
    expect(readFileSync(join(dir, 'thing-1', 'file'), 'utf8')).toBe('whole');
    expect(readdirSync(dir)).toEqual(['thing-1']);
  });

  test('keeps nothing of an entry that failed, and makes it the next time', async () => {
    let tries = 0;
    const entry = {
      name: 'thing-2',
      onWait: () => undefined,
      make: async (into: string) => {
        writeFileSync(join(into, 'half'), '');
        if (++tries === 1) throw new Error('the compiler said no');
      },
    };
    await expect(cached(entry, signal, dir)).rejects.toThrow('the compiler said no');
    expect(readdirSync(dir)).toEqual([]);
    await cached(entry, signal, dir);
    expect(readdirSync(dir)).toEqual(['thing-2']);
  });
});
