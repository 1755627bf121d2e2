import { describe, expect, test } from 'vitest';
import type { TreeEntry } from '../../../src/marketplace/port.ts';
import { readSkillTree, SKILL_LIMITS, type SkillLimits } from '../../../src/marketplace/skilltree.ts';
import { memoryReader } from './memory-reader.ts';

const NEVER = new AbortController().signal;
const DIR = 'plugins/a/skills/x';

async function read(files: Record<string, string>, limits: Partial<SkillLimits> = {}) {
  const reader = memoryReader(
    Object.fromEntries(Object.entries(files).map(([path, text]) => [`${DIR}/${path}`, text])),
  );
  const location = { tree: reader.rootOf(DIR), path: DIR };
  return { reader, tree: await readSkillTree(reader, location, NEVER, { ...SKILL_LIMITS, ...limits }) };
}

const shown = (tree: Awaited<ReturnType<typeof read>>['tree']) =>
  tree.files.map(({ path, mode, size, content }) => `${mode} ${path} ${size}${content ? '' : ' unread'}`).sort();

describe('readSkillTree', () => {
  test('gives every entry with mode, size and content', async () => {
    const { tree } = await read({
      'SKILL.md': 'hello',
      'bin/run.sh': '@100755 #!',
      'link.md': '@120000 SKILL.md',
      vendor: '@160000',
      'a/b/c.txt': '',
    });
    expect(tree).toMatchObject({ directory: 'x', path: DIR });
    expect(shown(tree)).toEqual([
      '100644 SKILL.md 5',
      '100644 a/b/c.txt 0',
      '100755 bin/run.sh 2',
      '120000 link.md 8',
      '160000 vendor 0 unread',
    ]);
  });

  test('above the byte limit it reads the four files with rules of their own, and all sizes', async () => {
    const { tree } = await read(
      {
        'SKILL.md': 'hello',
        '.skillenv': 'A=1',
        '.e2b.dockerfile': 'FROM x',
        'data.bin': 'x'.repeat(100),
        'small.txt': 'y',
      },
      { bytes: 50 },
    );
    expect(shown(tree)).toEqual([
      '100644 .e2b.dockerfile 6',
      '100644 .skillenv 3',
      '100644 SKILL.md 5',
      '100644 data.bin 100 unread',
      '100644 small.txt 1 unread',
    ]);
  });

  test('above the file limit it still counts, up to twice as many', async () => {
    const files = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`d${at}/f.txt`, 'x']));
    const { tree } = await read({ 'SKILL.md': 'hello', ...files }, { files: 20 });
    expect(tree.files.length).toBe(31);
    expect(tree.files.filter((file) => file.content).map((file) => file.path)).toEqual(['SKILL.md']);
  });

  test('a directory below the last level stands for its files', async () => {
    const { tree } = await read({ 'SKILL.md': '', 'a/b/c/d/e.txt': 'deep', 'a/b/ok.txt': 'x' }, { levels: 3 });
    expect(shown(tree)).toEqual(['100644 SKILL.md 0', '100644 a/b/c/d -1 unread', '100644 a/b/ok.txt 1']);
  });

  test('a tree that contains itself ends', async () => {
    const oid = 'e'.repeat(40);
    const self = (name: string): TreeEntry => ({ name, mode: '040000', oid });
    const reader = { treeByOid: async () => [self('a'), self('b'), self('c')], blob: async () => ({ size: -1 }) };
    const work = readSkillTree(reader, { tree: oid, path: DIR }, NEVER);
    await expect(work).rejects.toMatchObject({ policy: 'Stalled', reason: 'RepositoryTooLarge' });
  });

  test('keeps the bytes of names that are not UTF-8, at any depth', async () => {
    const raw = (...bytes: number[]) => new Uint8Array(bytes);
    const trees: Record<string, TreeEntry[]> = {
      root: [{ name: 'd\u00ff', rawName: raw(0x64, 0xff), mode: '040000', oid: 'sub' }],
      sub: [
        { name: 'é', mode: '100644', oid: 'blob' },
        { name: '\u00fe', rawName: raw(0xfe), mode: '100644', oid: 'blob' },
      ],
    };
    const reader = { treeByOid: async (oid: string) => trees[oid], blob: async () => ({ size: 1, content: raw(1) }) };
    const { files } = await readSkillTree(reader, { tree: 'root', path: DIR }, NEVER);
    expect(files.map(({ rawPath }) => [...(rawPath ?? [])])).toEqual([
      [0x64, 0xff, 0x2f, 0xc3, 0xa9],
      [0x64, 0xff, 0x2f, 0xfe],
    ]);
  });

  test('a blob that the mirror does not hold has size -1, a missing listing is an error', async () => {
    const trees: Record<string, TreeEntry[]> = { root: [{ name: 'big', mode: '100644', oid: 'gone' }] };
    const reader = { treeByOid: async (oid: string) => trees[oid], blob: async () => ({ size: -1 }) };
    expect((await readSkillTree(reader, { tree: 'root', path: DIR }, NEVER)).files).toEqual([
      { path: 'big', mode: '100644', size: -1 },
    ]);
    await expect(readSkillTree(reader, { tree: 'none', path: DIR }, NEVER)).rejects.toMatchObject({
      reason: 'MirrorCorrupt',
    });
  });

  test('reads a few megabytes at a time', async () => {
    const files = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`f${at}`, 'x'.repeat(1024 * 1024)]));
    const { reader, tree } = await read(files);
    expect(tree.files.every((file) => file.content)).toBe(true);
    expect(reader.peak).toBeLessThanOrEqual(4 * 1024 * 1024);
  });
});
