import { PRIVATE_ROOT_FILES } from './names.ts';
import { isProtectedPath } from './paths.ts';
import type { TreeFile } from './types.ts';

/** Where a symbolic link ends: a regular file of the same skill, or why it does not. */
export type LinkEnd = { file: TreeFile } | { problem: string; hint?: string };

/** A path of 512 bytes can be reached from 32 levels down with fewer bytes than this. */
const MAX_TARGET_BYTES = 1024;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of a link, or undefined when it is missing, too long or not UTF-8. */
export function linkText(link: TreeFile): string | undefined {
  if (!link.content || link.content.length === 0 || link.content.length > MAX_TARGET_BYTES) return undefined;
  try {
    return decoder.decode(link.content);
  } catch {
    return undefined;
  }
}

/**
 * Follows symbolic links within one skill, each at most once however many lead to it.
 * Rule (decisions: symlinks): a relative link to a regular file inside the same skill stands for a copy of that file; anything else is a problem.
 * Targets are resolved by their text alone; that a directory on the way exists is not asked.
 */
export class LinkResolver {
  readonly #entries: ReadonlyMap<string, TreeFile>;
  readonly #directories: ReadonlySet<string>;
  readonly #known = new Map<string, LinkEnd>();

  constructor(entries: ReadonlyMap<string, TreeFile>) {
    this.#entries = entries;
    this.#directories = directoriesOf(entries.keys());
  }

  /** Where the link at `path` ends. */
  resolve(path: string): LinkEnd {
    const chain: string[] = [];
    const end = this.#follow(path, chain);
    for (const link of chain) this.#known.set(link, end);
    return this.#public(path, end);
  }

  #follow(start: string, chain: string[]): LinkEnd {
    const seen = new Set<string>();
    let path = start;
    for (;;) {
      const known = this.#known.get(path);
      if (known) return known;
      const entry = this.#entries.get(path);
      if (entry?.mode !== '120000') return this.#endAt(path, entry);
      if (seen.has(path)) return { problem: 'leads back to itself' };
      seen.add(path);
      chain.push(path);
      const target = targetOf(path, entry);
      if ('problem' in target) return target;
      path = target.path;
    }
  }

  #endAt(path: string, entry: TreeFile | undefined): LinkEnd {
    if (!entry) return { problem: this.#directories.has(path) ? 'is a directory' : 'does not exist in the skill' };
    return entry.mode === '160000' ? { problem: 'is a submodule' } : { file: entry };
  }

  /** A copy of a private file under a public name would hand it to sandboxes and models. */
  #public(link: string, end: LinkEnd): LinkEnd {
    if ('problem' in end) return end;
    const { path } = end.file;
    const hidden = PRIVATE_ROOT_FILES.includes(path) || (isProtectedPath(path) && !isProtectedPath(link));
    return hidden ? { problem: 'is a protected file', hint: 'delete the link: protected files are never copied' } : end;
  }
}

function targetOf(path: string, link: TreeFile): { path: string } | { problem: string } {
  const text = linkText(link);
  if (text === undefined) return { problem: 'is empty, too long or not UTF-8' };
  if (text.startsWith('/')) return { problem: 'is an absolute path' };
  const segments = path.split('/').slice(0, -1);
  for (const segment of text.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment !== '..') segments.push(segment);
    else if (segments.pop() === undefined) return { problem: 'leaves the skill' };
  }
  const isDirectory = segments.length === 0 || /(?:^|\/)\.{0,2}$/.test(text);
  return isDirectory ? { problem: 'is a directory' } : { path: segments.join('/') };
}

function directoriesOf(paths: Iterable<string>): Set<string> {
  const found = new Set<string>();
  for (const path of paths) {
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      const directory = path.slice(0, end);
      if (found.has(directory)) break;
      found.add(directory);
    }
  }
  return found;
}
