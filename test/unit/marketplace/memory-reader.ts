import { createHash } from 'node:crypto';
import type { Blob, TreeEntry } from '../../../src/marketplace/port.ts';

const oidOf = (text: string) => createHash('sha1').update(text).digest('hex');

/**
 * A commit in memory: path → content; `@120000` and `@160000` stand for a link and a submodule, `@100755 text` for an executable.
 * Names may hold anything but a slash.
 */
export function memoryReader(files: Record<string, string>) {
  const trees = new Map<string, TreeEntry[]>([['', []]]);
  const blobs = new Map<string, Buffer>();
  const add = (path: string, mode: TreeEntry['mode'], oid: string) => {
    const slash = path.lastIndexOf('/');
    const parent = path.slice(0, Math.max(slash, 0));
    const name = path.slice(slash + 1);
    const entries = trees.get(parent) ?? [];
    if (!trees.has(parent)) {
      trees.set(parent, entries);
      add(parent, '040000', oidOf(`tree ${parent}`));
    }
    if (!entries.some((entry) => entry.name === name)) entries.push({ name, mode, oid });
  };
  for (const [path, text] of Object.entries(files)) {
    const match = /^@(\d{6}) ?/.exec(text);
    const content = Buffer.from(match ? text.slice(match[0].length) : text);
    const oid = oidOf(`blob ${path} ${text}`);
    blobs.set(oid, content);
    add(path, (match?.[1] ?? '100644') as TreeEntry['mode'], oid);
  }
  const byOid = new Map([...trees].map(([path, entries]) => [oidOf(`tree ${path}`), entries]));
  const reader = {
    reads: 0,
    /** Most bytes of contents that were being read at one moment. */
    peak: 0,
    open: 0,
    lose: (path: string) => void byOid.delete(oidOf(`tree ${path}`)),
    rootOf: (path: string) => oidOf(`tree ${path}`),
    tree: async (path: string) => {
      const entries = trees.get(path);
      reader.reads += 1;
      return entries && { oid: oidOf(`tree ${path}`), entries };
    },
    treeByOid: async (oid: string) => {
      reader.reads += 1;
      return byOid.get(oid);
    },
    blob: async (oid: string, maxBytes: number): Promise<Blob> => {
      const content = blobs.get(oid);
      if (!content) return { size: -1 };
      if (content.length > maxBytes) return { size: content.length };
      reader.open += content.length;
      reader.peak = Math.max(reader.peak, reader.open);
      await Promise.resolve();
      reader.open -= content.length;
      return { size: content.length, content };
    },
  };
  return reader;
}
