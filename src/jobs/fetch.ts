import { chmod, mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { holdSecret } from '../base/redact.ts';
import { EXIT } from '../build/exits.ts';
import { URL_KEYS } from '../build/input.ts';
import { LIMITS } from '../protocol/names.ts';
import { download, type Network, networkPool } from './download.ts';
import { codeOf, JobError } from './failure.ts';
import { readPackageTar } from './untar.ts';

/** What `fetch` is told. */
export interface FetchOptions {
  /** Directory with a file per URL, named as `URL_KEYS` says. */
  urls: string;
  /** Directory, empty, that becomes the build context. */
  context: string;
  /** Path of the Dockerfile to write, outside of the context. */
  dockerfile: string;
  tar: { sha256: string; size: number };
  dockerfileSource: { sha256: string; size: number };
  network: Network;
}

/** Headers and padding of an archive come on top of its files. */
const MAX_TAR_BYTES = LIMITS.packageBytes + LIMITS.files * 2048;
const MAX_URL_BYTES = 8192;

async function readURL(directory: string, key: string): Promise<string> {
  const url = (await readFile(join(directory, key), 'utf8')).trim();
  holdSecret(url);
  if (url.length <= MAX_URL_BYTES && /^https?:\/\//.test(url) && URL.canParse(url)) return url;
  throw new JobError(EXIT.Usage, `${key} in the Secret of this build is no http or https URL`);
}

function checkSizes({ tar, dockerfileSource }: FetchOptions): void {
  if (tar.size <= MAX_TAR_BYTES && dockerfileSource.size <= LIMITS.dockerfileBytes) return;
  throw new JobError(EXIT.ContextCorrupt, 'the package is larger than a skill may be');
}

/** Writes a new file; the mode holds whatever the umask is. */
async function writeNew(path: string, content: Uint8Array, mode: number): Promise<void> {
  const file = await open(path, 'wx', mode);
  try {
    await file.writeFile(content);
  } finally {
    await file.close();
  }
  await chmod(path, mode);
}

/** The directories between the context and a file, which get their mode whatever the umask is. */
async function makeDirectories(context: string, path: string, made: Set<string>): Promise<void> {
  const segments = path.split('/').slice(0, -1);
  for (let i = 1; i <= segments.length; i++) {
    const directory = join(context, ...segments.slice(0, i));
    if (made.has(directory)) continue;
    await mkdir(directory);
    await chmod(directory, 0o755);
    made.add(directory);
  }
}

async function unpack(tar: Uint8Array, context: string, signal: AbortSignal): Promise<number> {
  const files = readPackageTar(tar);
  const made = new Set<string>();
  for (const { path, content, mode } of files) {
    signal.throwIfAborted();
    try {
      await makeDirectories(context, path, made);
      await writeNew(join(context, path), content, mode);
    } catch (error) {
      // A file where another one needs a directory: the file system says what the archive got wrong.
      if (!['EEXIST', 'ENOTDIR', 'EISDIR'].includes(codeOf(error))) throw error;
      throw new JobError(EXIT.ContextCorrupt, `the package's archive cannot hold ${path} beside its other files`);
    }
  }
  return files.length;
}

/**
 * Step one of a build: downloads package and Dockerfile, verifies both, and writes the context, without the private files of the skill,
 * and the Dockerfile outside of it. Answers with the number of files. Throws JobError.
 */
export async function fetchContext(options: FetchOptions, clock: Clock, signal: AbortSignal): Promise<number> {
  checkSizes(options);
  const [tarURL, dockerfileURL] = [
    await readURL(options.urls, URL_KEYS.tar),
    await readURL(options.urls, URL_KEYS.dockerfile),
  ];
  const dispatcher = await networkPool(options.network);
  try {
    const tools = { dispatcher, clock };
    const wanted = { name: 'package.tar', url: tarURL, ...options.tar };
    const dockerfile = await download(
      { name: 'the Dockerfile', url: dockerfileURL, ...options.dockerfileSource },
      tools,
      signal,
    );
    const count = await unpack(await download(wanted, tools, signal), options.context, signal);
    await writeNew(options.dockerfile, dockerfile, 0o644);
    return count;
  } finally {
    await dispatcher.destroy();
  }
}
