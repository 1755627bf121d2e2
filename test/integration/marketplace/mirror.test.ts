import { mkdir } from 'node:fs/promises';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { waiting } from '../../../src/base/errors.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { DEFAULT_GIT_LIMITS } from '../../../src/marketplace/limits.ts';
import { type FetchInto, Mirror } from '../../../src/marketplace/mirror.ts';
import { git } from '../../support/git.ts';
import {
  failure,
  filesBelow,
  mirrorsIn,
  NEVER,
  newRepository,
  newSource,
  publicRemote,
  remoteAt,
  skill,
  temporary,
  text,
} from './support.ts';

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
