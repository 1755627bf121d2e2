import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { extract, type Header } from 'tar-stream';
import { describe, expect, test } from 'vitest';
import { type TarEntry, writeTar } from '../../../src/store/tar.ts';

const entry = (path: string, content: string | Uint8Array = path, mode: TarEntry['mode'] = '0644'): TarEntry => ({
  path,
  mode,
  content: Buffer.from(content),
});

async function read(tar: Uint8Array): Promise<{ header: Header; content: Buffer }[]> {
  const out: { header: Header; content: Buffer }[] = [];
  for await (const one of Readable.from([tar]).pipe(extract())) {
    const chunks: Buffer[] = [];
    for await (const chunk of one) chunks.push(chunk as Buffer);
    out.push({ header: one.header, content: Buffer.concat(chunks) });
  }
  return out;
}

/** Paths at every border of the ustar fields, and beyond them. */
const PATHS: Record<string, string> = {
  'a short name': 'SKILL.md',
  'a name of 100 bytes': 'n'.repeat(100),
  'a name of 101 bytes without a slash': 'n'.repeat(101),
  'a prefix of 155 bytes and a name of 100': `${'p'.repeat(155)}/${'n'.repeat(100)}`,
  'a prefix of 156 bytes': `${'p'.repeat(156)}/n`,
  'many levels that split late': `${'d/'.repeat(60)}${'n'.repeat(90)}`,
  'non-ASCII text': 'references/Über größe 日本語 🚀.md',
  'a pax record whose length crosses 100': 'ü'.repeat(45),
  'a path of 512 bytes': `${'d'.repeat(99)}/`.repeat(5) + 'n'.repeat(12),
  'blanks and quotes': `a b/"c" 'd'.txt`,
};

describe('writeTar', () => {
  test.each(Object.entries(PATHS))('tar-stream reads back %s', async (_name, path) => {
    const { tar } = writeTar([entry(path)]);
    const [one] = await read(tar);
    expect(one?.header).toMatchObject({ name: path, type: 'file', mode: 0o644, uid: 0, gid: 0, mtime: new Date(0) });
    expect(one?.content.toString()).toBe(path);
  });

  test('the tar of the system extracts the same names, bytes and modes', () => {
    const dir = mkdtempSync(join(tmpdir(), 'tar-'));
    try {
      // Host file systems cap one name at 255 bytes, which all these keep.
      const entries = Object.values(PATHS).map((path, i) =>
        entry(`${i}/${path}`, `${i}`.repeat(i * 300), i % 2 ? '0755' : '0644'),
      );
      writeFileSync(join(dir, 'x.tar'), writeTar(entries).tar);
      execFileSync('tar', ['-xpf', join(dir, 'x.tar'), '-C', dir], {
        env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' },
      });
      const found = readdirSync(dir, { recursive: true, withFileTypes: true }).filter(
        (f) => f.isFile() && f.name !== 'x.tar',
      );
      expect(found).toHaveLength(entries.length);
      for (const one of entries) {
        expect(readFileSync(join(dir, one.path)).equals(one.content), one.path).toBe(true);
        expect(statSync(join(dir, one.path)).mode & 0o777).toBe(Number.parseInt(one.mode, 8));
      }
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  test('offsets address exactly the content of each file, and all entries come back in order', async () => {
    const files = fc.array(
      fc.record({
        path: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 }).filter((p) => /^[^\p{Cc}/]+$/u.test(p)),
        content: fc.uint8Array({ maxLength: 1500 }),
      }),
      { maxLength: 8 },
    );
    await fc.assert(
      fc.asyncProperty(files, async (drawn) => {
        const entries = drawn.map(({ path, content }) => entry(path, content));
        const { tar, offsets } = writeTar(entries);
        for (const [i, one] of entries.entries()) {
          const at = offsets[i] as number;
          expect(Buffer.compare(tar.subarray(at, at + one.content.length), one.content)).toBe(0);
        }
        expect((await read(tar)).map((e) => e.header.name)).toEqual(entries.map((e) => e.path));
      }),
      { numRuns: 60 },
    );
  });

  test('an archive ends with two zero blocks and has whole blocks only', () => {
    const { tar } = writeTar([entry('a', 'x')]);
    expect(tar.length).toBe(4 * 512);
    expect(tar.subarray(2 * 512).every((byte) => byte === 0)).toBe(true);
  });

  test('the archive is memory of its own, which can move to another thread', () => {
    const { tar } = writeTar([entry('a')]);
    expect(tar.buffer.byteLength).toBe(tar.byteLength);
  });

  test('a reader without pax sees a plain name that climbs nowhere', () => {
    const { tar } = writeTar([entry(`${'a'.repeat(120)}..ü`)]);
    const name = Buffer.from(tar.subarray(1024, 1124)).toString('latin1').replace(/\0+$/, '');
    expect(name).toMatch(/^@path\/[0-9a-f]{32}$/);
  });
});
