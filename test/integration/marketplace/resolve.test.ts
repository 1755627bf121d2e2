import { describe, expect, inject, test } from 'vitest';
import type { RefSpec } from '../../../src/marketplace/port.ts';
import { failure, NEVER, newRepository, newSource, publicRemote } from './support.ts';

describe('resolve against a real Git server', () => {
  test('finds the commit of each kind of ref with one request', async () => {
    const repository = await newRepository();
    const first = await repository.commit({ 'README.md': 'one' });
    const second = await repository.commit({ 'README.md': 'two' });
    await repository.tag('v1.0.0', first);
    await repository.tag('v1.4.0', second, 'annotated');
    await repository.tag('v2.0.0-rc.1', second);
    await repository.branch('release/1', first);
    const { source, counts } = await newSource();
    const remote = publicRemote(repository);
    const cases: [RefSpec, string, string][] = [
      [{}, `main@sha1:${second}`, 'refs/heads/main'],
      [{ branch: 'release/1' }, `release/1@sha1:${first}`, 'refs/heads/release/1'],
      [{ tag: 'v1.0.0' }, `v1.0.0@sha1:${first}`, 'refs/tags/v1.0.0'],
      [{ tag: 'v1.4.0' }, `v1.4.0@sha1:${second}`, 'refs/tags/v1.4.0'],
      [{ semver: '>=1.0.0' }, `v1.4.0@sha1:${second}`, 'refs/tags/v1.4.0'],
      [{ semver: '1.0.x' }, `v1.0.0@sha1:${first}`, 'refs/tags/v1.0.0'],
      [{ name: 'refs/heads/release/1' }, `refs/heads/release/1@sha1:${first}`, 'refs/heads/release/1'],
      [{ name: 'refs/tags/v1.4.0', branch: 'main' }, `refs/tags/v1.4.0@sha1:${second}`, 'refs/tags/v1.4.0'],
    ];
    for (const [ref, revision, fetchRef] of cases) {
      expect(await source.resolve(remote, ref, NEVER)).toEqual({ commit: revision.slice(-40), revision, fetchRef });
    }
    expect(counts).toEqual({ 'ls-remote': cases.length, fetch: 0 });
  });

  test('takes a commit id as it is, without a request', async () => {
    const { source, counts } = await newSource();
    const commit = 'a'.repeat(40);
    const resolved = await source.resolve(
      { url: 'https://host.invalid/x', timeoutMs: 1 },
      { commit, branch: 'main' },
      NEVER,
    );
    expect(resolved).toEqual({ commit, revision: `sha1:${commit}`, fetchRef: commit });
    expect(counts).toEqual({ 'ls-remote': 0, fetch: 0 });
  });

  test('follows a force-push, a moved tag, a deleted branch and a new HEAD', async () => {
    const repository = await newRepository();
    const first = await repository.commit({ a: '1' });
    await repository.tag('latest', first);
    await repository.branch('gone', first);
    const { source } = await newSource();
    const remote = publicRemote(repository);
    expect((await source.resolve(remote, { branch: 'gone' }, NEVER)).commit).toBe(first);
    const second = await repository.forcePush({ b: '2' });
    await repository.tag('latest', second);
    await repository.deleteRef('refs/heads/gone');
    await repository.branch('next', first);
    await repository.setHead('next');
    expect((await source.resolve(remote, { branch: 'main' }, NEVER)).commit).toBe(second);
    expect((await source.resolve(remote, { tag: 'latest' }, NEVER)).commit).toBe(second);
    expect((await source.resolve(remote, {}, NEVER)).revision).toBe(`next@sha1:${first}`);
    expect(await failure(source.resolve(remote, { branch: 'gone' }, NEVER))).toMatchInlineSnapshot(
      `"Waiting RefNotFound: the repository has no refs/heads/gone: push it, or correct spec.ref.branch"`,
    );
  });

  test('tells an empty repository, an unknown ref and an unmatched range apart', async () => {
    const empty = await newRepository();
    const full = await newRepository();
    await full.tag('v1.0.0', await full.commit({ a: '1' }));
    const { source } = await newSource();
    expect(await failure(source.resolve(publicRemote(empty), {}, NEVER))).toMatchInlineSnapshot(
      `"Waiting EmptyRepository: the HEAD of the repository points at no commit: push a first commit, or name an existing branch in spec.ref.branch"`,
    );
    expect(await failure(source.resolve(publicRemote(empty), { branch: 'main' }, NEVER))).toMatchInlineSnapshot(
      `"Waiting RefNotFound: the repository has no refs/heads/main (the repository has no HEAD either: it may be empty): push it, or correct spec.ref.branch"`,
    );
    expect(await failure(source.resolve(publicRemote(full), { tag: 'v2' }, NEVER))).toMatchInlineSnapshot(
      `"Waiting RefNotFound: the repository has no refs/tags/v2: push it, or correct spec.ref.tag"`,
    );
    expect(
      await failure(source.resolve(publicRemote(full), { name: 'refs/pull/1/head' }, NEVER)),
    ).toMatchInlineSnapshot(
      `"Waiting RefNotFound: the repository has no refs/pull/1/head: push it, or correct spec.ref.name"`,
    );
    expect(await failure(source.resolve(publicRemote(full), { semver: '2.x' }, NEVER))).toMatchInlineSnapshot(
      `"Waiting RefNotFound: none of the 1 tags of the repository is a version in the range "2.x": push such a tag, or widen spec.ref.semver"`,
    );
  });

  test('names the missing repository', async () => {
    const { source } = await newSource();
    const base = inject('cluster').git.httpUrl;
    const remote = { url: `${base}/no-such-repository.git`, timeoutMs: 20_000 };
    expect(await failure(source.resolve(remote, {}, NEVER))).toMatchInlineSnapshot(
      `"Waiting RepositoryNotFound: 127.0.0.1:<port> has no such repository, or hides it from absent credentials: correct the URL, or name a Secret in spec.secretRef"`,
    );
  });
});
