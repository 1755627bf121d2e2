import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** A file of a commit: its text, or its content with a mode, or a symbolic link, or a submodule at a commit. */
export type TestFile =
  | string
  | Buffer
  | { content: string | Buffer; mode?: '100644' | '100755' }
  | { symlink: string }
  | { submodule: string };

/** What a commit holds: path → file. */
export type TestTree = Record<string, TestFile>;

interface CommitOptions {
  /** Branch that gets the commit; default: `main`. */
  branch?: string;
  message?: string;
  /** The commit starts a new history (a force-push): no parent, nothing kept. */
  orphan?: boolean;
  /** Files to take away from the parent's; only with `keep`. */
  remove?: string[];
  /** Starts from the files of the branch; default: true unless `orphan`. */
  keep?: boolean;
  /** Commit time in seconds since the epoch; default counts up from a fixed day, so that ids repeat. */
  time?: number;
}

/** Git's own environment, free of the settings of the machine. */
const ENVIRONMENT = {
  PATH: process.env.PATH ?? '',
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_TERMINAL_PROMPT: '0',
};
const FIRST_DAY = 1_750_000_000;

/** Runs git in a repository and returns what it printed; rejects with its error text. */
export async function git(repository: string, args: readonly string[], input: string | Buffer = ''): Promise<string> {
  const child = spawn('git', [...args], { cwd: repository, env: ENVIRONMENT, stdio: ['pipe', 'pipe', 'pipe'] });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  child.on('error', reject);
  child.on('close', (code) => {
    if (code === 0) resolve(Buffer.concat(out).toString('utf8').trim());
    else
      reject(new Error(`git ${args.join(' ')} ended with code ${code}: ${Buffer.concat(err).toString('utf8').trim()}`));
  });
  return await promise;
}

const data = (content: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`data ${content.length}\n`), content, Buffer.from('\n')]);

/** Always quoted, so that any byte but NUL can stand in a path. */
const quotePath = (path: string): string => {
  const escaped = path.replaceAll(/[\\"]/g, '\\$&').replaceAll('\n', '\\n');
  return `"${escaped}"`;
};

function fileCommand(path: string, file: TestFile): Buffer {
  if (typeof file === 'string' || Buffer.isBuffer(file)) return fileCommand(path, { content: file });
  if ('submodule' in file) return Buffer.from(`M 160000 ${file.submodule} ${quotePath(path)}\n`);
  if ('symlink' in file) {
    return Buffer.concat([Buffer.from(`M 120000 inline ${quotePath(path)}\n`), data(Buffer.from(file.symlink))]);
  }
  const mode = file.mode ?? '100644';
  return Buffer.concat([Buffer.from(`M ${mode} inline ${quotePath(path)}\n`), data(Buffer.from(file.content))]);
}

/** A bare repository that a test writes to without any checkout. */
export class TestRepository {
  readonly name: string;
  readonly path: string;
  #commits = 0;

  constructor(name: string, path: string) {
    this.name = name;
    this.path = path;
  }

  /** Adds a commit with these files to a branch and returns its id. */
  async commit(files: TestTree, options: CommitOptions = {}): Promise<string> {
    const { branch = 'main', message = 'change', orphan = false, remove = [], keep = !orphan } = options;
    const ref = `refs/heads/${branch}`;
    const parent = orphan ? '' : await this.resolve(ref).catch(() => '');
    const time = options.time ?? FIRST_DAY + this.#commits++;
    const parts: Buffer[] = [
      Buffer.from(`commit ${ref}\ncommitter Tester <tester@example.invalid> ${time} +0000\n`),
      data(Buffer.from(message)),
      // Without a "from" line fast-import goes on from nothing: the ref did not exist in its own run.
      ...(parent ? [Buffer.from(`from ${parent}\n`)] : []),
      ...(keep ? [] : [Buffer.from('deleteall\n')]),
      ...remove.map((path) => Buffer.from(`D ${quotePath(path)}\n`)),
      ...Object.entries(files).map(([path, file]) => fileCommand(path, file)),
    ];
    await git(this.path, ['fast-import', '--quiet', '--force', '--date-format=raw'], Buffer.concat(parts));
    return await this.resolve(ref);
  }

  /** Like `commit`, but the branch starts anew with these files alone. */
  async forcePush(files: TestTree, options: CommitOptions = {}): Promise<string> {
    return await this.commit(files, { ...options, orphan: true });
  }

  /** Creates or moves a branch. */
  async branch(name: string, commit: string): Promise<void> {
    await git(this.path, ['update-ref', `refs/heads/${name}`, commit]);
  }

  /** Creates or moves a tag; with a message it is an annotated one. */
  async tag(name: string, commit: string, message?: string): Promise<void> {
    const identity = ['-c', 'user.name=Tester', '-c', 'user.email=tester@example.invalid'];
    const annotated = message === undefined ? [] : ['-a', '-m', message];
    await git(this.path, [...identity, 'tag', '-f', ...annotated, name, commit]);
  }

  /** Deletes a ref, by its full name. */
  async deleteRef(ref: string): Promise<void> {
    await git(this.path, ['update-ref', '-d', ref]);
  }

  /** Sets the branch that HEAD names. */
  async setHead(branch: string): Promise<void> {
    await git(this.path, ['symbolic-ref', 'HEAD', `refs/heads/${branch}`]);
  }

  /** The id that a revision stands for. */
  async resolve(revision: string): Promise<string> {
    return await git(this.path, ['rev-parse', '--verify', '--quiet', '--end-of-options', revision]);
  }

  /** The id of the directory or file at a path of a commit. */
  async objectAt(commit: string, path: string): Promise<string> {
    return await this.resolve(`${commit}:${path}`);
  }
}

/** Creates the bare repository `<root>/<name>.git` (or opens it when it is there). Its HEAD names `main`. */
export async function createRepository(root: string, name: string): Promise<TestRepository> {
  const path = join(root, `${name}.git`);
  if (!existsSync(path)) await git(root, ['init', '--quiet', '--bare', '--initial-branch=main', path]);
  return new TestRepository(name, path);
}
