import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { waiting } from '../../../src/base/errors.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { DEFAULT_GIT_LIMITS } from '../../../src/marketplace/limits.ts';
import { type FetchInto, Mirror } from '../../../src/marketplace/mirror.ts';
import type { TreeReader } from '../../../src/marketplace/port.ts';
import { eventually } from '../../support/eventually.ts';
import { git, type TestTree } from '../../support/git.ts';
import {
  catFilesOf,
  failure,
  filesBelow,
  gitProcesses,
  NEVER,
  newRepository,
  newSource,
  processesWith,
  publicRemote,
  remoteAt,
  temporary,
} from './support.ts';

const skill = (name: string, text = 'body'): TestTree => ({
  [`plugins/docs/skills/${name}/SKILL.md`]: `---\nname: ${name}\ndescription: A test skill\n---\n${text}\n`,
});

async function text(reader: TreeReader, directory: string, name: string): Promise<string | undefined> {
  const tree = await reader.tree(directory, NEVER);
  const entry = tree?.entries.find((candidate) => candidate.name === name);
  const blob = entry && (await reader.blob(entry.oid, 1_000_000, NEVER));
  return blob?.content && Buffer.from(blob.content).toString('utf8');
}

const mirrorsIn = (dir: string) => readdirSync(dir).filter((name) => name !== 'home');

describe('the mirror', () => {
  test('reads any directory and blob of the commit, and says undefined for what is not there', async () => {
    const repository = await newRepository();
    await repository.commit({
      ...skill('pdf'),
      'plugins/docs/skills/pdf/bin/run.sh': { content: '#!', mode: '100755' },
    });
    const { source } = await newSource();
    const remote = publicRemote(repository);
    const resolved = await source.resolve(remote, {}, NEVER);
    await using reader = await source.open(remote, resolved, NEVER);
    expect(reader.commit).toBe(resolved.commit);
    expect(await text(reader, 'plugins/docs/skills/pdf', 'SKILL.md')).toContain('name: pdf');
    const tree = await reader.tree('plugins/docs/skills/pdf', NEVER);
    expect(tree?.oid).toBe(await repository.objectAt(resolved.commit, 'plugins/docs/skills/pdf'));
    expect(await reader.treeByOid(tree?.oid ?? '', NEVER)).toEqual(tree?.entries);
    expect(tree?.entries.map(({ name, mode }) => `${mode} ${name}`)).toEqual(['100644 SKILL.md', '040000 bin']);
    expect((await reader.tree('plugins/docs/skills/pdf/bin', NEVER))?.entries[0]?.mode).toBe('100755');
    expect(await reader.tree('plugins/none', NEVER)).toBeUndefined();
    expect(await reader.tree('plugins/docs/skills/pdf/SKILL.md', NEVER)).toBeUndefined();
    expect(await reader.treeByOid('0'.repeat(40), NEVER)).toBeUndefined();
    expect(await reader.blob('0'.repeat(40), 10, NEVER)).toEqual({ size: -1 });
    const oid = tree?.entries[0]?.oid ?? '';
    expect(await reader.blob(oid, 5, NEVER)).toEqual({ size: 49 });
  });

  test('fetches a commit once, however many ask at the same time', async () => {
    const repository = await newRepository();
    await repository.commit(skill('pdf'));
    const { source, counts } = await newSource();
    const remote = publicRemote(repository);
    const resolved = await source.resolve(remote, {}, NEVER);
    const readers = await Promise.all(Array.from({ length: 20 }, () => source.open(remote, resolved, NEVER)));
    expect(counts.fetch).toBe(1);
    for (const reader of readers) expect(await text(reader, 'plugins/docs/skills/pdf', 'SKILL.md')).toContain('pdf');
    await Promise.all(readers.map((reader) => reader[Symbol.asyncDispose]()));
    await using cached = await source.openCached(remote, resolved.commit, NEVER);
    expect(cached?.commit).toBe(resolved.commit);
    expect(counts.fetch).toBe(1);
  });

  test('knows nothing of a commit that it has not fetched', async () => {
    const repository = await newRepository();
    const commit = await repository.commit(skill('pdf'));
    const { source, counts } = await newSource();
    expect(await source.openCached(publicRemote(repository), commit, NEVER)).toBeUndefined();
    expect(counts).toEqual({ 'ls-remote': 0, fetch: 0 });
  });

  test('brings the next commit into the same mirror, and the old one stays readable', async () => {
    const repository = await newRepository();
    await repository.commit({ ...skill('pdf'), 'big.bin': Buffer.alloc(300_000, 'random') });
    const { source, dir, counts } = await newSource();
    const remote = publicRemote(repository);
    const first = await source.resolve(remote, {}, NEVER);
    await using before = await source.open(remote, first, NEVER);
    const [mirror] = mirrorsIn(dir);
    await repository.commit(skill('pdf', 'changed'));
    const second = await source.resolve(remote, {}, NEVER);
    await using after = await source.open(remote, second, NEVER);
    expect(mirrorsIn(dir)).toEqual([mirror]);
    expect(await text(after, 'plugins/docs/skills/pdf', 'SKILL.md')).toContain('changed');
    expect(await text(before, 'plugins/docs/skills/pdf', 'SKILL.md')).toContain('body');
    expect(counts).toEqual({ 'ls-remote': 2, fetch: 2 });
  });

  test('follows a force-push, and says so when the old commit is gone', async () => {
    const repository = await newRepository();
    await repository.commit(skill('pdf'));
    const { source } = await newSource();
    const remote = publicRemote(repository);
    await (await source.open(remote, await source.resolve(remote, {}, NEVER), NEVER))[Symbol.asyncDispose]();
    await repository.forcePush(skill('docx', 'rewritten'));
    const moved = await source.resolve(remote, {}, NEVER);
    await using reader = await source.open(remote, moved, NEVER);
    expect(await text(reader, 'plugins/docs/skills/docx', 'SKILL.md')).toContain('rewritten');
    const gone = 'deadbeef'.repeat(5);
    const missing = source.open(remote, { commit: gone, revision: `sha1:${gone}`, fetchRef: gone }, NEVER);
    expect(await failure(missing)).toMatchInlineSnapshot(
      `"Waiting RefNotFound: the server does not hand out <id>: it is gone (a force-push, a deleted branch), or the server allows no fetch by id; correct spec.ref.commit or name a branch"`,
    );
  });

  test('opens a commit by its id alone', async () => {
    const repository = await newRepository();
    const old = await repository.commit(skill('pdf'));
    await repository.commit(skill('pdf', 'newer'));
    const { source } = await newSource();
    const remote = publicRemote(repository);
    await using reader = await source.open(remote, await source.resolve(remote, { commit: old }, NEVER), NEVER);
    expect(await text(reader, 'plugins/docs/skills/pdf', 'SKILL.md')).toContain('body');
  });

  test('never shares content across credentials', async () => {
    const repository = await newRepository();
    const commit = await repository.commit(skill('pdf'));
    const { privateUrl, username, password } = inject('cluster').git;
    const { source } = await newSource();
    const allowed = remoteAt(privateUrl, repository, { username, password });
    const resolved = await source.resolve(allowed, {}, NEVER);
    await using _reader = await source.open(allowed, resolved, NEVER);
    expect(await source.openCached(remoteAt(privateUrl, repository), commit, NEVER)).toBeUndefined();
    const stranger = remoteAt(privateUrl, repository, { username, password: 'guess' });
    expect(await source.openCached(stranger, commit, NEVER)).toBeUndefined();
    expect(await failure(source.open(stranger, resolved, NEVER))).toContain('Waiting AuthenticationFailed');
  });

  test('leaves blobs above the limit on the server and reports them as missing', async () => {
    const repository = await newRepository();
    await repository.commit({
      'plugins/a/skills/b/huge.bin': Buffer.alloc(5_000, 'x'),
      'plugins/a/skills/b/small': 'ok',
    });
    const { source } = await newSource({ blobBytes: 4_000 });
    const remote = publicRemote(repository);
    await using reader = await source.open(remote, await source.resolve(remote, {}, NEVER), NEVER);
    const entries = (await reader.tree('plugins/a/skills/b', NEVER))?.entries ?? [];
    const sizes = await Promise.all(
      entries.map(async ({ name, oid }) => [name, (await reader.blob(oid, 10_000, NEVER)).size]),
    );
    expect(sizes).toEqual([
      ['huge.bin', -1],
      ['small', 2],
    ]);
  });

  test('never checks anything out', async () => {
    const repository = await newRepository();
    await repository.commit({ ...skill('pdf'), '.gitattributes': '* filter=evil', 'hooks/post-checkout': '#!/bin/sh' });
    const { source, dir } = await newSource();
    const remote = publicRemote(repository);
    await using _reader = await source.open(remote, await source.resolve(remote, {}, NEVER), NEVER);
    const files = filesBelow(dir).map((file) =>
      file.replace(/^[0-9a-f]{64}-\d+\//, '').replaceAll(/[0-9a-f]{40}/g, '<id>'),
    );
    expect(files).toMatchInlineSnapshot(`
      [
        "read/HEAD",
        "read/config",
        "repo/HEAD",
        "repo/config",
        "repo/objects/pack/pack-<id>.idx",
        "repo/objects/pack/pack-<id>.pack",
        "repo/objects/pack/pack-<id>.promisor",
        "repo/refs/mirror/<id>",
        "repo/shallow",
      ]
    `);
  });
});

describe('bounds of the mirror', () => {
  test('a mirror above the limit is refused and leaves nothing', async () => {
    const repository = await newRepository();
    const noise = randomBytes(2 * 1024 * 1024);
    await repository.commit({ ...skill('pdf'), 'noise.bin': noise });
    const { source, dir } = await newSource({ repositoryBytes: 1024 * 1024 });
    const remote = publicRemote(repository);
    const resolved = await source.resolve(remote, {}, NEVER);
    expect(await failure(source.open(remote, resolved, NEVER))).toMatchInlineSnapshot(
      `"Stalled RepositoryTooLarge: one commit of the repository needs more than 1 MiB: move large files out of it, or raise the operator's limit"`,
    );
    expect(mirrorsIn(dir)).toEqual([]);
  });

  test('is cloned anew after many fetches while open readers finish', async () => {
    const repository = await newRepository();
    await repository.commit(skill('pdf', 'version 0'));
    const { source, dir } = await newSource({ maxFetches: 2 });
    const remote = publicRemote(repository);
    const readers: TreeReader[] = [];
    for (let version = 1; version <= 5; version++) {
      readers.push(await source.open(remote, await source.resolve(remote, {}, NEVER), NEVER));
      await repository.commit(skill('pdf', `version ${version}`));
    }
    expect(mirrorsIn(dir)).toHaveLength(2);
    for (const [version, reader] of readers.entries()) {
      expect(await text(reader, 'plugins/docs/skills/pdf', 'SKILL.md')).toContain(`version ${version}`);
      await reader[Symbol.asyncDispose]();
    }
    await eventually(() => mirrorsIn(dir).length === 1, { what: 'removal of the old clone' });
  });

  test('the least recently used mirror goes when the disk is full', async () => {
    const { source, counts } = await newSource({ diskBytes: 1 });
    const [first, second] = [await newRepository(), await newRepository()];
    const resolved = [];
    for (const repository of [first, second]) {
      await repository.commit(skill('pdf'));
      const remote = publicRemote(repository);
      resolved.push(await source.resolve(remote, {}, NEVER));
      await (await source.open(remote, resolved.at(-1) as never, NEVER))[Symbol.asyncDispose]();
    }
    expect(counts.fetch).toBe(2);
    expect(await source.openCached(publicRemote(first), resolved[0]?.commit ?? '', NEVER)).toBeUndefined();
    await using kept = await source.openCached(publicRemote(second), resolved[1]?.commit ?? '', NEVER);
    expect(kept).toBeDefined();
  });

  test('what nothing names is removed after the grace, and stays while it is named', async () => {
    const { source, dir } = await newSource({ graceMs: 50 });
    const [named, forgotten] = [await newRepository(), await newRepository()];
    for (const repository of [named, forgotten]) {
      await repository.commit(skill('pdf'));
      const remote = publicRemote(repository);
      await (await source.open(remote, await source.resolve(remote, {}, NEVER), NEVER))[Symbol.asyncDispose]();
    }
    source.retain([publicRemote(named), publicRemote(forgotten)]);
    expect(mirrorsIn(dir)).toHaveLength(2);
    source.retain([publicRemote(named), { url: 'file:///etc' }]);
    await eventually(() => mirrorsIn(dir).length === 1, { what: 'removal of the forgotten mirror' });
    source.retain([publicRemote(named)]);
    const remote = publicRemote(named);
    await using reader = await source.openCached(remote, (await source.resolve(remote, {}, NEVER)).commit, NEVER);
    expect(reader).toBeDefined();
  });

  test('twenty fetches that end at their deadline leave disk and processes as they were', async () => {
    const { source, dir } = await newSource();
    const commit = 'a'.repeat(40);
    const url = new URL(`/silent/stuck-${process.pid}.git`, inject('cluster').git.httpUrl).href;
    const opens = Array.from({ length: 20 }, (_, at) =>
      failure(
        source.open({ url: `${url}/${at}`, timeoutMs: 1_000 }, { commit, revision: '', fetchRef: commit }, NEVER),
      ),
    );
    for (const message of await Promise.all(opens)) expect(message).toContain('Retry GitTimeout');
    expect(filesBelow(dir)).toEqual([]);
    expect(mirrorsIn(dir)).toEqual([]);
    expect(processesWith(`stuck-${process.pid}`)).toEqual([]);
  });

  test('a fetch that is killed half-way discards the mirror, and the next one works', async () => {
    const repository = await newRepository();
    await repository.commit(skill('pdf'));
    const { source, dir } = await newSource();
    const remote = publicRemote(repository);
    await using before = await source.open(remote, await source.resolve(remote, {}, NEVER), NEVER);
    await repository.commit({ 'noise.bin': randomBytes(16 * 1024 * 1024) });
    const resolved = await source.resolve(remote, {}, NEVER);
    const work = failure(source.open(remote, resolved, NEVER));
    const receiving = () => filesBelow(dir).some((file) => file.includes('/tmp_pack'));
    await eventually(receiving, { what: 'a half-received pack', intervalMs: 1 });
    for (const pid of gitProcesses(`GIT_DIR=${dir}`, 'index-pack')) process.kill(pid, 'SIGKILL');
    expect(await work).toContain('Retry ');
    expect(await text(before, 'plugins/docs/skills/pdf', 'SKILL.md')).toContain('pdf');
    await before[Symbol.asyncDispose]();
    expect(mirrorsIn(dir)).toEqual([]);
    await using reader = await source.open(remote, resolved, NEVER);
    expect(reader.commit).toBe(resolved.commit);
  });

  test('a fetch that fails fails once for all who wait for it', async () => {
    const { source, counts } = await newSource();
    const commit = 'b'.repeat(40);
    const url = new URL(`/silent/shared-${process.pid}.git`, inject('cluster').git.httpUrl).href;
    const open = () =>
      failure(source.open({ url, timeoutMs: 1_000 }, { commit, revision: '', fetchRef: commit }, NEVER));
    const messages = await Promise.all(Array.from({ length: 5 }, open));
    for (const message of messages) expect(message).toContain('Retry GitTimeout');
    expect(counts.fetch).toBe(1);
  });

  test('a waiter that leaves does not end the fetch of the others', async () => {
    const repository = await newRepository();
    await repository.commit(skill('pdf'));
    const { source, counts } = await newSource();
    const remote = publicRemote(repository);
    const resolved = await source.resolve(remote, {}, NEVER);
    const impatient = new AbortController();
    const left = source.open(remote, resolved, impatient.signal);
    const stays = source.open(remote, resolved, NEVER);
    impatient.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    await using reader = await stays;
    expect(reader.commit).toBe(resolved.commit);
    expect(counts.fetch).toBe(1);
  });

  test('a killed cat-file is started again and nobody notices', async () => {
    const repository = await newRepository();
    await repository.commit(skill('pdf'));
    const { source, dir } = await newSource();
    const remote = publicRemote(repository);
    await using reader = await source.open(remote, await source.resolve(remote, {}, NEVER), NEVER);
    expect(await text(reader, 'plugins/docs/skills/pdf', 'SKILL.md')).toContain('pdf');
    for (let round = 0; round < 3; round++) {
      const pids = catFilesOf(dir);
      expect(pids).toHaveLength(1);
      for (const pid of pids) process.kill(pid, 'SIGKILL');
      expect(await text(reader, 'plugins/docs/skills/pdf', 'SKILL.md')).toContain('pdf');
    }
  });

  test('a mirror whose files were destroyed is fetched anew', async () => {
    const repository = await newRepository();
    await repository.commit(skill('pdf'));
    const { source, dir, counts } = await newSource();
    const remote = publicRemote(repository);
    const resolved = await source.resolve(remote, {}, NEVER);
    await using broken = await source.open(remote, resolved, NEVER);
    for (const pid of catFilesOf(dir)) process.kill(pid, 'SIGKILL');
    await eventually(() => catFilesOf(dir).length === 0);
    const [mirror] = mirrorsIn(dir);
    await rm(`${dir}/${mirror}/repo/objects/pack`, { recursive: true });
    expect(await failure(broken.tree('plugins', NEVER))).toMatchInlineSnapshot(
      `"Retry MirrorCorrupt: commit <id> cannot be read from the local mirror: the operator fetches it anew by itself"`,
    );
    await using reader = await source.open(remote, resolved, NEVER);
    expect(await text(reader, 'plugins/docs/skills/pdf', 'SKILL.md')).toContain('pdf');
    expect(counts.fetch).toBe(2);
  });

  test('leftovers of a killed operator are swept at the start, foreign files are not', async () => {
    const { source, dir } = await newSource();
    await mkdir(`${dir}/tmp-7/repo`, { recursive: true });
    await mkdir(`${dir}/${'ab'.repeat(32)}-3`, { recursive: true });
    await mkdir(`${dir}/call-aB3dEf`, { recursive: true });
    await writeFile(`${dir}/notes.txt`, 'mine');
    const repository = await newRepository();
    await repository.commit(skill('pdf'));
    await source.resolve(publicRemote(repository), {}, NEVER);
    expect(readdirSync(dir).sort()).toEqual(['home', 'notes.txt']);
  });

  test('close ends everything and removes the mirrors, replaced ones with open readers included', async () => {
    const repository = await newRepository();
    const { source, dir } = await newSource({ maxFetches: 0 });
    const remote = publicRemote(repository);
    for (const version of ['one', 'two']) {
      await repository.commit(skill('pdf', version));
      const reader = await source.open(remote, await source.resolve(remote, {}, NEVER), NEVER);
      onTestFinished(() => reader[Symbol.asyncDispose]());
      expect(await text(reader, 'plugins/docs/skills/pdf', 'SKILL.md')).toContain(version);
    }
    expect(mirrorsIn(dir)).toHaveLength(2);
    expect(catFilesOf(dir)).toHaveLength(2);
    await source.close();
    await eventually(() => catFilesOf(dir).length === 0, { what: 'end of cat-file', timeoutMs: 5_000 });
    expect(mirrorsIn(dir)).toEqual([]);
    await expect(source.resolve(remote, {}, NEVER)).rejects.toThrow('stopping');
  });

  test('a caller that waits for a free process may leave at once', async () => {
    const { source } = await newSource({ processes: 1 });
    const url = new URL(`/silent/queue-${process.pid}.git`, inject('cluster').git.httpUrl).href;
    const first = failure(source.resolve({ url, timeoutMs: 3_000 }, {}, NEVER));
    const controller = new AbortController();
    const second = source.resolve({ url, timeoutMs: 3_000 }, {}, controller.signal);
    const began = performance.now();
    controller.abort(new Error('left'));
    await expect(second).rejects.toThrow('left');
    expect(performance.now() - began).toBeLessThan(1_000);
    expect(await first).toContain('GitTimeout');
  });
});

describe('servers that do not hand out commits by id', () => {
  async function mirrored(repository: Awaited<ReturnType<typeof newRepository>>) {
    const dir = await temporary();
    await mkdir(`${dir}/home`);
    let number = 0;
    const closing = new AbortController();
    const context = {
      dir,
      gitPath: 'git',
      clock: systemClock,
      log: silentLogger,
      limits: DEFAULT_GIT_LIMITS,
      closing: closing.signal,
    };
    const mirror = new Mirror({ ...context, generations: new Set(), next: () => ++number }, 'x');
    const fetchInto: FetchInto = async (into, source, target) => {
      if (!source.startsWith('refs/')) throw waiting('RefNotFound', 'not handed out');
      await git(`${into}/repo`, ['fetch', '--quiet', '--depth=1', `file://${repository.path}`, `+${source}:${target}`]);
    };
    const obtain = (commit: string) =>
      mirror.obtain(
        { commit, revision: '', fetchRef: 'refs/heads/main' },
        fetchInto,
        (generation) => generation.dir,
        NEVER,
      );
    onTestFinished(() => mirror.discard());
    return { obtain, dir };
  }

  test('are asked for the ref instead', async () => {
    const repository = await newRepository();
    const commit = await repository.commit(skill('pdf'));
    const { obtain, dir } = await mirrored(repository);
    expect(await obtain(commit)).toContain(dir);
  });

  test('and a ref that moved meanwhile is no answer', async () => {
    const repository = await newRepository();
    const old = await repository.commit(skill('pdf'));
    await repository.commit(skill('pdf', 'newer'));
    const { obtain, dir } = await mirrored(repository);
    expect(await failure(obtain(old))).toMatchInlineSnapshot(
      `"Retry RefNotFound: refs/heads/main moved while it was fetched: the operator tries again by itself"`,
    );
    expect(mirrorsIn(dir)).toEqual([]);
  });
});
