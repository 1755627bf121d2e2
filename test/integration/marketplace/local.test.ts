import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openLocal } from '../../../src/marketplace/local.ts';
import type { SkillTree } from '../../../src/protocol/types.ts';
import { git } from '../../support/git.ts';
import { failure, NEVER, temporary } from './support.ts';

async function write(root: string, files: Record<string, string | Buffer>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(root, dirname(path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
}

const MARKET = {
  'README.md': '',
  'plugins/docs/skills/pdf/SKILL.md': 'pdf',
  'plugins/docs/skills/pdf/bin/run.sh': '#!',
  'plugins/docs/skills/lower/skill.md': '',
  'plugins/docs/skills/_shared/x': '',
  'plugins/dev/skills/lint/SKILL.md': 'lint',
};

async function folder(files: Record<string, string | Buffer> = MARKET): Promise<string> {
  const root = await temporary();
  await write(root, files);
  await chmod(join(root, 'plugins/docs/skills/pdf/bin/run.sh'), 0o755).catch(() => undefined);
  return root;
}

async function worktree(files: Record<string, string | Buffer> = MARKET): Promise<string> {
  const root = await folder(files);
  await git(root, ['init', '--quiet']);
  await git(root, ['add', '--all']);
  return root;
}

const shown = (tree: SkillTree) =>
  tree.files
    .map(
      ({ path, mode, size, content }) =>
        `${mode} ${path} ${size} ${content ? Buffer.from(content).toString('utf8') : 'unread'}`,
    )
    .sort();

async function listing(path: string) {
  await using content = await openLocal(path, NEVER);
  return {
    kind: content.kind,
    origin: content.origin,
    skills: content.skills.map((skill) => `${skill.path}${skill.hasSkillMd ? '' : ' (no SKILL.md)'}`),
    problems: content.problems.map((problem) => `${problem.path} ${problem.reason}`),
  };
}

async function readOne(path: string, skill: string): Promise<SkillTree> {
  await using content = await openLocal(path, NEVER);
  const found = content.skills.find((candidate) => candidate.path === skill);
  if (!found) throw new Error(`no skill ${skill} in ${content.skills.map((one) => one.path)}`);
  return await found.read(NEVER);
}

describe.each([
  ['a plain folder', folder, 'folder'],
  ['a Git work tree', worktree, 'git-index'],
] as const)('openLocal on %s', (_what, make, origin) => {
  test('finds skills in a marketplace, a plugin and a skill by the same rules', async () => {
    const root = await make();
    expect(await listing(root)).toEqual({
      kind: 'marketplace',
      origin,
      skills: [
        'plugins/dev/skills/lint',
        'plugins/docs/skills/_shared (no SKILL.md)',
        'plugins/docs/skills/lower (no SKILL.md)',
        'plugins/docs/skills/pdf',
      ],
      problems: ['plugins/docs/skills/lower SkillMdWrongCase'],
    });
    expect(await listing(join(root, 'plugins/docs'))).toEqual({
      kind: 'plugin',
      origin,
      skills: ['skills/_shared (no SKILL.md)', 'skills/lower (no SKILL.md)', 'skills/pdf'],
      problems: ['skills/lower SkillMdWrongCase'],
    });
    expect(await listing(join(root, 'plugins/docs/skills/pdf'))).toEqual({
      kind: 'skill',
      origin,
      skills: ['.'],
      problems: [],
    });
    expect(await listing(join(root, 'plugins/docs/skills/lower'))).toMatchObject({
      kind: 'skill',
      problems: ['. SkillMdWrongCase'],
    });
    expect(await listing(join(root, 'plugins/docs/skills/_shared'))).toMatchObject({
      kind: 'skill',
      problems: ['. SkillMdMissing'],
    });
  });

  test('reads the same files from the marketplace and from the skill itself', async () => {
    const root = await make();
    const expected = ['100644 SKILL.md 3 pdf', '100755 bin/run.sh 2 #!'];
    const fromRoot = await readOne(root, 'plugins/docs/skills/pdf');
    expect(shown(fromRoot)).toEqual(expected);
    expect(fromRoot).toMatchObject({ directory: 'pdf', path: 'plugins/docs/skills/pdf' });
    const fromPlugin = await readOne(join(root, 'plugins/docs'), 'skills/pdf');
    expect(shown(fromPlugin)).toEqual(expected);
    const alone = await readOne(join(root, 'plugins/docs/skills/pdf'), '.');
    expect(shown(alone)).toEqual(expected);
    expect(alone.directory).toBe('pdf');
  });

  test('keeps links as links and names as they are', async () => {
    const root = await folder({ 'SKILL.md': 'x', 'ä b\n.txt': 'odd' });
    await symlink('SKILL.md', join(root, 'link.md'));
    await symlink('/etc/passwd', join(root, 'out'));
    if (origin === 'git-index') {
      await git(root, ['init', '--quiet']);
      await git(root, ['add', '--all']);
    }
    expect(shown(await readOne(root, '.'))).toEqual([
      '100644 SKILL.md 1 x',
      '100644 ä b\n.txt 3 odd',
      '120000 link.md 8 SKILL.md',
      '120000 out 11 /etc/passwd',
    ]);
  });
});

describe('openLocal in a Git work tree', () => {
  test('takes the staged bytes and modes, not the edited ones, and no untracked file', async () => {
    const root = await worktree();
    await write(root, { 'plugins/docs/skills/pdf/SKILL.md': 'edited', 'plugins/docs/skills/pdf/untracked.txt': 'x' });
    await chmod(join(root, 'plugins/docs/skills/pdf/SKILL.md'), 0o755);
    expect(shown(await readOne(root, 'plugins/docs/skills/pdf'))).toEqual([
      '100644 SKILL.md 3 pdf',
      '100755 bin/run.sh 2 #!',
    ]);
  });

  test('reads the folder when nothing below it is tracked yet', async () => {
    const root = await worktree({ 'README.md': '' });
    await write(root, { 'new/SKILL.md': 'fresh' });
    expect(await listing(join(root, 'new'))).toMatchObject({ origin: 'folder', skills: ['.'] });
    expect(shown(await readOne(join(root, 'new'), '.'))).toEqual(['100644 SKILL.md 5 fresh']);
  });

  test('names the file of an unresolved merge', async () => {
    const root = await worktree({ 'SKILL.md': 'x' });
    const blob = await git(root, ['hash-object', '-w', '--stdin'], 'y');
    await git(
      root,
      ['update-index', '--index-info'],
      `0 ${'0'.repeat(40)} 0\tSKILL.md\n100644 ${blob} 1\tSKILL.md\n100644 ${blob} 2\tSKILL.md\n`,
    );
    expect(await failure(openLocal(root, NEVER))).toMatchInlineSnapshot(
      `"Stalled GitOperationFailed: SKILL.md has merge conflicts in the index: resolve them and "git add" the file"`,
    );
  });
});

describe('openLocal elsewhere', () => {
  test('says when there is no directory', async () => {
    const root = await folder({ 'file.txt': '' });
    for (const path of [join(root, 'file.txt'), join(root, 'none')]) {
      expect(await failure(openLocal(path, NEVER))).toContain('Stalled PathNotFound');
    }
  });

  test('without git it reads the folder', async () => {
    const root = await worktree();
    await using content = await openLocal(root, NEVER, '/nonexistent/git');
    expect(content.origin).toBe('folder');
  });

  test('leaves .git, pipes and names that are not UTF-8 unread', async () => {
    const root = await folder({ 'SKILL.md': 'x' });
    await git(root, ['init', '--quiet']);
    await writeFile(Buffer.concat([Buffer.from(`${root}/bad`), Buffer.from([0xff])]), 'x');
    const { files } = await readOne(root, '.');
    expect(files.map(({ path, rawPath, size }) => [path, rawPath !== undefined, size])).toEqual([
      ['SKILL.md', false, 1],
      ['bad\u00ff', true, -1],
    ]);
  });
});
