import { describe, expect, test } from 'vitest';
import { createSkillMdCache, type DiscoverOptions, discover, skillMdOf } from '../../../src/marketplace/discover.ts';
import type { TreeEntry } from '../../../src/marketplace/port.ts';
import { memoryReader } from './memory-reader.ts';

const NEVER = new AbortController().signal;
const file = (name: string, mode: TreeEntry['mode'] = '100644'): TreeEntry => ({ name, mode, oid: 'f'.repeat(40) });

async function found(files: Record<string, string>, options: DiscoverOptions = {}) {
  const { skills, problems } = await discover(memoryReader(files), options, NEVER);
  return {
    skills: skills.map(({ path, hasSkillMd }) => (hasSkillMd ? path : `${path} (no SKILL.md)`)),
    problems: problems.map(({ path, reason }) => `${path}: ${reason}`),
  };
}

describe('skillMdOf', () => {
  test.each<[string, TreeEntry[], unknown]>([
    ['exactly SKILL.md', [file('SKILL.md')], 'present'],
    ['an executable one', [file('SKILL.md', '100755')], 'present'],
    ['a link to one', [file('SKILL.md', '120000')], 'present'],
    ['both spellings', [file('skill.md'), file('SKILL.md')], 'present'],
    ['another spelling', [file('Skill.MD')], { wrongCase: 'Skill.MD' }],
    ['a directory of that name', [file('SKILL.md', '040000')], 'missing'],
    ['a submodule of that name', [file('SKILL.md', '160000')], 'missing'],
    ['nothing', [], 'missing'],
  ])('%s', (_what, entries, verdict) => {
    expect(skillMdOf(entries)).toEqual(verdict);
  });
});

describe('discover', () => {
  test('finds skills at plugins/<plugin>/skills/<skill> and nowhere else', async () => {
    const files = {
      'README.md': '',
      'SKILL.md': '',
      'skills/loose/SKILL.md': '',
      'plugins/README.md': '',
      'plugins/SKILL.md': '',
      'plugins/docs/SKILL.md': '',
      'plugins/docs/commands/x.md': '',
      'plugins/docs/skills/README.md': '',
      'plugins/docs/skills/pdf/SKILL.md': '',
      'plugins/docs/skills/pdf/nested/skills/inner/SKILL.md': '',
      'plugins/docs/skills/docx/SKILL.md': '',
      'plugins/agents/skills/plan/SKILL.md': '',
      'plugins/no-skills/agents/a.md': '',
      'plugins/wrong/Skills/x/SKILL.md': '',
      '.claude-plugin/marketplace.json': '{ broken',
    };
    expect(await found(files)).toEqual({
      skills: ['plugins/agents/skills/plan', 'plugins/docs/skills/docx', 'plugins/docs/skills/pdf'],
      problems: [],
    });
  });

  test('reports what only looks like a skill', async () => {
    const files = {
      'plugins/a/skills/empty/notes.md': '',
      'plugins/a/skills/lower/skill.md': '',
      'plugins/a/skills/_shared/lib.py': '',
      'plugins/a/skills/.cache/x': '',
      'plugins/a/skills/_real/SKILL.md': '',
      'plugins/a/skills/linked': '@120000',
      'plugins/a/skills/sub': '@160000',
      'plugins/b': '@160000',
      'plugins/c': '@120000',
      'plugins/d/skills': '@120000',
    };
    expect(await found(files)).toMatchInlineSnapshot(`
      {
        "problems": [
          "plugins/a/skills/empty: SkillMdMissing",
          "plugins/a/skills/linked: SymlinkNotSupported",
          "plugins/a/skills/lower: SkillMdWrongCase",
          "plugins/a/skills/sub: SubmoduleNotSupported",
          "plugins/b: SubmoduleNotSupported",
          "plugins/c: SymlinkNotSupported",
          "plugins/d/skills: SymlinkNotSupported",
        ],
        "skills": [
          "plugins/a/skills/.cache (no SKILL.md)",
          "plugins/a/skills/_real",
          "plugins/a/skills/_shared (no SKILL.md)",
          "plugins/a/skills/empty (no SKILL.md)",
          "plugins/a/skills/lower (no SKILL.md)",
        ],
      }
    `);
    expect(
      (await discover(memoryReader(files), {}, NEVER)).problems.map(({ message }) => message),
    ).toMatchInlineSnapshot(`
      [
        "the directory has no SKILL.md: add one, or start the name of the directory with "_" to keep it out",
        "a symbolic link stands where a skill directory is expected: commit the directory itself",
        "skill.md is not read: rename it to SKILL.md",
        "a submodule stands where a skill directory is expected: commit the files themselves, or make the submodule's repository a source of its own",
        "a submodule stands where a plugin directory is expected: commit the files themselves, or make the submodule's repository a source of its own",
        "a symbolic link stands where a plugin directory is expected: commit the directory itself",
        "a symbolic link stands where a directory is expected: commit the directory itself",
      ]
    `);
  });

  test('reports a plugins entry that is no directory', async () => {
    expect(await found({ plugins: '@160000' })).toEqual({ skills: [], problems: ['plugins: SubmoduleNotSupported'] });
    expect(await found({ 'README.md': '' })).toEqual({ skills: [], problems: [] });
  });

  test.each(['..', '.git', '.GIT', 'a\nb', 'a\\b', 'x'.repeat(300)])('reports the unusable name %j', async (name) => {
    const result = await found({ [`plugins/a/skills/${name}/SKILL.md`]: '', 'plugins/a/skills/ok/SKILL.md': '' });
    expect(result.skills).toEqual(['plugins/a/skills/ok']);
    expect(result.problems).toHaveLength(1);
    expect(result.problems[0]).toMatch(/: NameUnusable$/);
    expect(result.problems[0]).not.toContain('\n');
  });

  test('takes the first of two directories of one name', async () => {
    const reader = memoryReader({ 'plugins/a/skills/x/SKILL.md': '' });
    const twice = {
      ...reader,
      treeByOid: async (oid: string) => (await reader.treeByOid(oid))?.flatMap((entry) => [entry, entry]),
    };
    const { skills, problems } = await discover(twice, {}, NEVER);
    expect(skills.map(({ path }) => path)).toEqual(['plugins/a/skills/x']);
    expect(problems.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'plugins/a: the name of this plugin directory stands there twice: rename it',
      'plugins/a/skills/x: the name of this skill directory stands there twice: rename it',
    ]);
  });

  test('looks below the sub-directory only, and says when there is none', async () => {
    const files = { 'plugins/a/skills/outer/SKILL.md': '', 'tools/x/plugins/a/skills/inner/SKILL.md': '' };
    expect(await found(files, { path: 'tools/x' })).toEqual({ skills: ['plugins/a/skills/inner'], problems: [] });
    await expect(found(files, { path: 'tools/y' })).rejects.toMatchObject({
      policy: 'Stalled',
      reason: 'PathNotFound',
    });
  });

  test('include and exclude decide before anything is read or reported', async () => {
    const files = {
      'plugins/a/skills/x/SKILL.md': '',
      'plugins/a/skills/y/none.md': '',
      'plugins/b/skills/x/SKILL.md': '',
    };
    expect(await found(files, { include: ['a/*'], exclude: ['*/y'] })).toEqual({
      skills: ['plugins/a/skills/x'],
      problems: [],
    });
    await expect(found(files, { include: ['('] })).rejects.toMatchObject({ reason: 'InvalidSpec' });
  });

  test('reads a directory once per content when it may remember', async () => {
    const reader = memoryReader({ 'plugins/a/skills/x/SKILL.md': '', 'plugins/a/skills/y/z.md': '' });
    const cache = createSkillMdCache();
    const first = await discover(reader, { cache }, NEVER);
    const reads = reader.reads;
    const second = await discover(reader, { cache }, NEVER);
    expect(second).toEqual(first);
    expect(reader.reads - reads).toBe(reads - 2);
  });

  test('a listing that cannot be read ends it: never a part for the whole', async () => {
    const reader = memoryReader({ 'plugins/a/skills/x/SKILL.md': '', 'plugins/b/skills/y/SKILL.md': '' });
    reader.lose('plugins/b/skills');
    await expect(discover(reader, {}, NEVER)).rejects.toMatchObject({ policy: 'Retry', reason: 'MirrorCorrupt' });
  });

  test('the cache keeps its bound', () => {
    const cache = createSkillMdCache(2);
    for (const tree of ['a', 'b', 'c']) cache.set(tree, 'present');
    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([undefined, 'present', 'present']);
  });
});
