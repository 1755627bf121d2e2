import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import type { TreeReader } from '../../../src/marketplace/port.ts';
import { eventually } from '../../support/eventually.ts';
import {
  catFilesOf,
  failure,
  filesBelow,
  gitProcesses,
  mirrorsIn,
  NEVER,
  newRepository,
  newSource,
  processesWith,
  publicRemote,
  skill,
  text,
} from './support.ts';

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
    let gone = false;
    const first = failure(source.resolve({ url, timeoutMs: 3_000 }, {}, NEVER)).finally(() => {
      gone = true;
    });
    const controller = new AbortController();
    const second = source.resolve({ url, timeoutMs: 3_000 }, {}, controller.signal);
    controller.abort(new Error('left'));
    await expect(second).rejects.toThrow('left');
    expect(gone).toBe(false);
    expect(await first).toContain('GitTimeout');
  });
});
