import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { discover } from '../../../src/marketplace/discover.ts';
import type { RefSpec } from '../../../src/marketplace/port.ts';
import { readSkillTree } from '../../../src/marketplace/skilltree.ts';
import { git } from '../../support/git.ts';
import { failure, NEVER, newRepository, newSource, publicRemote, temporary } from './support.ts';

describe('values that try to run something', () => {
  test('no hostile address or ref touches the sentinel', async () => {
    const sentinel = join(await temporary(), 'sentinel');
    const { source } = await newSource();
    const repository = await newRepository();
    await repository.commit({ a: 'b' });
    const good = publicRemote(repository).url;
    const urls = [
      `--upload-pack=touch ${sentinel}`,
      `--upload-pack=touch${'$'}{IFS}${sentinel}`,
      `ext::sh -c touch% ${sentinel}`,
      `ext::touch%20${sentinel}`,
      `ssh://-oProxyCommand=touch%20${sentinel}/x`,
      `ssh://-oProxyCommand=touch${'$'}{IFS}${sentinel}/x`,
      `file://${repository.path}`,
      repository.path,
      'allowed@evil:x',
      `${good}\n--upload-pack=touch ${sentinel}`,
      `http::${good}`,
      `fd::17`,
    ];
    for (const url of urls) {
      expect(await failure(source.resolve({ url, timeoutMs: 5_000 }, {}, NEVER))).toContain('Stalled URLInvalid');
      const opened = { commit: 'a'.repeat(40), revision: '', fetchRef: 'refs/heads/main' };
      expect(await failure(source.open({ url, timeoutMs: 5_000 }, opened, NEVER))).toContain('Stalled URLInvalid');
    }
    const refs: RefSpec[] = [
      { branch: `--upload-pack=touch ${sentinel}` },
      { tag: '-x' },
      { name: `refs/heads/x:refs/heads/y` },
      { name: `refs/heads/$(touch ${sentinel})` },
      { commit: `--exec=touch ${sentinel}` },
      { semver: `$(touch ${sentinel})` },
    ];
    for (const ref of refs) {
      expect(await failure(source.resolve(publicRemote(repository), ref, NEVER))).toContain('Stalled RefInvalid');
    }
    for (const fetchRef of [`--upload-pack=touch ${sentinel}`, '+refs/*:refs/*', 'a b']) {
      const resolved = { commit: 'a'.repeat(40), revision: '', fetchRef };
      expect(await failure(source.open(publicRemote(repository), resolved, NEVER))).toContain('RefInvalid');
    }
    expect(existsSync(sentinel)).toBe(false);
  });

  test('backticks and dollars in a branch name are only a name', async () => {
    const repository = await newRepository();
    const commit = await repository.commit({ a: 'b' });
    await repository.branch('$(touch-x)`y`;z', commit);
    const { source } = await newSource();
    const resolved = await source.resolve(publicRemote(repository), { branch: '$(touch-x)`y`;z' }, NEVER);
    await using reader = await source.open(publicRemote(repository), resolved, NEVER);
    expect(reader.commit).toBe(commit);
  });
});

describe('repositories of odd shape', () => {
  async function discovered(files: Parameters<Awaited<ReturnType<typeof newRepository>>['commit']>[0]) {
    const repository = await newRepository();
    await repository.commit(files);
    const { source } = await newSource();
    const remote = publicRemote(repository);
    const reader = await source.open(remote, await source.resolve(remote, {}, NEVER), NEVER);
    return { reader, ...(await discover(reader, {}, NEVER)) };
  }

  test('links, submodules, LFS pointers and odd names come through as they are', async () => {
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 12345\n`;
    const result = await discovered({
      '.gitmodules': '[submodule "x"]\n\tpath = plugins/a/skills/module\n\turl = ext::sh -c false\n',
      '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n*.md ident eol=crlf\n',
      'plugins/a/skills/x/SKILL.md': '$Id$\n',
      'plugins/a/skills/x/model.bin': pointer,
      'plugins/a/skills/x/ä "quoted"\n\t.txt': 'odd',
      'plugins/a/skills/x/up': { symlink: '../../../../etc/passwd' },
      'plugins/a/skills/x/vendor': { submodule: 'b'.repeat(40) },
      'plugins/a/skills/module': { submodule: 'c'.repeat(40) },
      'plugins/a/skills/linked': { symlink: 'x' },
    });
    await using reader = result.reader;
    expect(result.problems.map(({ path, reason }) => `${path} ${reason}`)).toEqual([
      'plugins/a/skills/linked SymlinkNotSupported',
      'plugins/a/skills/module SubmoduleNotSupported',
    ]);
    const [skill] = result.skills;
    expect(skill).toMatchObject({ plugin: 'a', skill: 'x', hasSkillMd: true });
    const { files } = await readSkillTree(reader, { tree: skill?.tree ?? '', path: 'plugins/a/skills/x' }, NEVER);
    const shown = files.map(({ path, mode, content }) => [
      mode,
      path,
      content && Buffer.from(content).toString('utf8'),
    ]);
    expect(shown).toEqual([
      ['100644', 'SKILL.md', '$Id$\n'],
      ['100644', 'model.bin', pointer],
      ['120000', 'up', '../../../../etc/passwd'],
      ['160000', 'vendor', undefined],
      ['100644', 'ä "quoted"\n\t.txt', 'odd'],
    ]);
  });

  test('a tree with names that no checkout could hold is read without harm', async () => {
    const repository = await newRepository();
    await repository.commit({ 'plugins/a/skills/x/SKILL.md': 'x' });
    const blob = await repository.objectAt('main', 'plugins/a/skills/x/SKILL.md');
    const mktree = (...entries: string[]) =>
      git(repository.path, ['mktree', '-z', '--missing'], `${entries.join('\0')}\0`);
    const skill = await mktree(`100644 blob ${blob}\tSKILL.md`, `100644 blob ${blob}\t..`, `100644 blob ${blob}\t.git`);
    const skills = await mktree(`040000 tree ${skill}\tx`, `040000 tree ${skill}\t..`);
    const plugin = await mktree(`040000 tree ${skills}\tskills`);
    const plugins = await mktree(`040000 tree ${plugin}\ta`, `040000 tree ${plugin}\t.git`);
    const root = await mktree(`040000 tree ${plugins}\tplugins`);
    const identity = ['-c', 'user.name=T', '-c', 'user.email=t@example.invalid'];
    const commit = await git(repository.path, [...identity, 'commit-tree', '-m', 'odd', root]);
    await repository.branch('odd', commit);
    const { source } = await newSource();
    const remote = publicRemote(repository);
    await using reader = await source.open(remote, await source.resolve(remote, { branch: 'odd' }, NEVER), NEVER);
    const { skills: found, problems } = await discover(reader, {}, NEVER);
    expect(found.map(({ path }) => path)).toEqual(['plugins/a/skills/x']);
    expect(problems.map(({ path, reason }) => `${path} ${reason}`)).toEqual([
      'plugins/.git NameUnusable',
      'plugins/a/skills/.. NameUnusable',
    ]);
    const { files } = await readSkillTree(reader, { tree: skill, path: 'plugins/a/skills/x' }, NEVER);
    expect(files.map(({ path }) => path).sort()).toEqual(['..', '.git', 'SKILL.md']);
  });

  test('the sub-directory of a git-subdir source stands for the root', async () => {
    const repository = await newRepository();
    await repository.commit({ 'tools/plugins/a/skills/x/SKILL.md': 'x', 'plugins/a/skills/other/SKILL.md': 'x' });
    const { source } = await newSource();
    const remote = publicRemote(repository);
    await using reader = await source.open(remote, await source.resolve(remote, {}, NEVER), NEVER);
    const { skills } = await discover(reader, { path: 'tools' }, NEVER);
    expect(skills.map(({ path }) => path)).toEqual(['plugins/a/skills/x']);
    expect(await failure(discover(reader, { path: 'tools/none' }, NEVER))).toMatchInlineSnapshot(
      `"Stalled PathNotFound: the commit has no directory "tools/none": correct spec.gitSubdir.path, or push the directory"`,
    );
  });

  test('one changed skill of many costs one ls-remote and one fetch, and moves one tree', async () => {
    const repository = await newRepository();
    const files = Object.fromEntries(
      Array.from({ length: 200 }, (_, at) => [`plugins/p/skills/s${at}/SKILL.md`, `text ${at}`]),
    );
    await repository.commit(files);
    const { source, counts } = await newSource();
    const remote = publicRemote(repository);
    const trees = async () => {
      await using reader = await source.open(remote, await source.resolve(remote, {}, NEVER), NEVER);
      return new Map((await discover(reader, {}, NEVER)).skills.map(({ path, tree }) => [path, tree]));
    };
    const before = await trees();
    await trees();
    expect(counts).toEqual({ 'ls-remote': 2, fetch: 1 });
    await repository.commit({ 'plugins/p/skills/s7/SKILL.md': 'changed' });
    const after = await trees();
    expect(counts).toEqual({ 'ls-remote': 3, fetch: 2 });
    expect([...after].filter(([path, tree]) => before.get(path) !== tree).map(([path]) => path)).toEqual([
      'plugins/p/skills/s7',
    ]);
  });
});
