import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runSkillctl } from '../../../src/cli/program.ts';
import type { ValidateResult } from '../../../src/cli/result.ts';
import { examples, git, repository, skillctl, temporaryDirectory, writeTree } from './helpers.ts';

const skill = (name: string, more = ''): string =>
  `---\nname: ${name}\ndescription: Does a thing. Use it in tests.\n${more}---\n\nDo it.\n`;

/** Three skills with several violations each, one good one, and one directory that is none. */
const BROKEN = {
  'plugins/docs/skills/pdf/SKILL.md':
    '---\nname: Pdfs\ndescription: Reads: files\nruntime: bash\n---\n\nSee $TFROBOT_HOME.\n',
  'plugins/docs/skills/word/SKILL.md': skill('word'),
  'plugins/docs/skills/old/skill.md': skill('old'),
  'plugins/ops/skills/image/SKILL.md': skill('image', 'runtime: cubesandbox\nmodle: gpt\n'),
  'plugins/ops/skills/image/.e2b.dockerfile': 'FROM debian:12-slim\n',
  'plugins/ops/skills/image/.skillenv': 'A=1\nA=2\nTFROBOT_X=1\n',
};

const validateJson = async (cwd: string, ...paths: string[]): Promise<ValidateResult & { code: number }> => {
  const { code, out } = await skillctl(cwd, 'validate', '--output', 'json', ...paths);
  return { code, ...(JSON.parse(out) as ValidateResult) };
};

test('the example marketplace has exactly its one documented violation', async () => {
  const { code, out } = await skillctl(repository, 'validate', 'examples/marketplace');
  expect(out).toMatchInlineSnapshot(`
    "examples/marketplace/plugins/media/skills/image-contact-sheet/SKILL.md:11:26 error PlaceholderUnknown  the placeholder $TFROBOT_OUTPUT_DIR does not exist
      fix: use $TFROBOT_SKILL_DIR, $TFROBOT_SESSION_ID, $TFROBOT_ROBOT_ID, or put the text into a fenced code block to keep it as it is
    9 skills: 8 valid, 1 invalid (1 error, 0 warnings)
    "
  `);
  expect(code).toBe(1);
});

test('the example marketplace covers every runtime and both kinds of plain files', async () => {
  const { skills, problems } = await validateJson(repository, 'examples/marketplace');
  expect(problems).toEqual([]);
  const valid = skills.filter((one) => one.valid);
  expect(valid.map((one) => `${one.path} ${one.runtime} ${one.tier} ${one.files}`)).toMatchInlineSnapshot(`
    [
      "plugins/data/skills/csv-aggregator cubesandbox::python 1 6",
      "plugins/data/skills/monthly-report e2b::python 1 3",
      "plugins/data/skills/payload-check cubesandbox::node 1 2",
      "plugins/media/skills/scanned-pdf-text e2b 2 4",
      "plugins/media/skills/video-thumbnail cubesandbox 2 4",
      "plugins/release/skills/changelog-writer prompt-only 0 2",
      "plugins/release/skills/deploy-helper prompt-only 0 2",
      "plugins/release/skills/slack-thread-digest e2b::node 1 3",
    ]
  `);
  expect(valid.flatMap((one) => one.warnings)).toEqual([]);
  for (const one of valid) expect(one.digest).toMatch(/^[0-9a-f]{64}$/);
});

test('several violations over several skills are all reported, in each format', async () => {
  await using temporary = await temporaryDirectory();
  await writeTree(temporary.path, BROKEN);
  const human = await skillctl(temporary.path, 'validate', '.');
  expect(human.code).toBe(1);
  expect(human.out).toMatchInlineSnapshot(`
    "plugins/docs/skills/pdf/SKILL.md:3:14 error YamlColonUnquoted  the value contains a colon that YAML reads as another key
      fix: quote the value: description: "Reads: files"
    plugins/docs/skills/pdf/SKILL.md:7:5 error PlaceholderUnknown  the placeholder $TFROBOT_HOME does not exist
      fix: use $TFROBOT_SKILL_DIR, $TFROBOT_SESSION_ID, $TFROBOT_ROBOT_ID, or put the text into a fenced code block to keep it as it is
    plugins/ops/skills/image/.skillenv:2:1 error SkillenvKeyDuplicate  the key A in line 2 of .skillenv stands already in line 1
      fix: keep one of the two lines
    plugins/ops/skills/image/.skillenv:3:1 error SkillenvKeyReserved  the key TFROBOT_X in .skillenv starts with TFROBOT_, which belongs to the platform
      fix: rename the key, or delete the line: the platform sets its own variables
    plugins/ops/skills/image/SKILL.md:4:10 error DockerfileMissing  runtime: cubesandbox requires .cubesandbox.dockerfile, found .e2b.dockerfile
      fix: write runtime: e2b, or rename and adapt the file: git mv .e2b.dockerfile .cubesandbox.dockerfile
    plugins/ops/skills/image/SKILL.md:5:1 warning FieldUnknown  the field "modle" is unknown and ignored
      fix: move it below metadata, or leave it: it has no effect here
    plugins/docs/skills/old error SkillMdWrongCase  skill.md is not read: rename it to SKILL.md
    3 skills: 1 valid, 2 invalid (6 errors, 1 warning)
    "
  `);
  expect(human.err).toMatchInlineSnapshot(`
    "note: . has no files tracked by Git: all files, modes from disk
    "
  `);

  const github = await skillctl(temporary.path, 'validate', '--output', 'github', '.');
  expect(github.code).toBe(1);
  expect(github.out).toMatchInlineSnapshot(`
    "::error file=plugins/docs/skills/pdf/SKILL.md,line=3,col=14,title=YamlColonUnquoted::the value contains a colon that YAML reads as another key%0Afix: quote the value: description: "Reads: files"
    ::error file=plugins/docs/skills/pdf/SKILL.md,line=7,col=5,title=PlaceholderUnknown::the placeholder $TFROBOT_HOME does not exist%0Afix: use $TFROBOT_SKILL_DIR, $TFROBOT_SESSION_ID, $TFROBOT_ROBOT_ID, or put the text into a fenced code block to keep it as it is
    ::error file=plugins/ops/skills/image/.skillenv,line=2,col=1,title=SkillenvKeyDuplicate::the key A in line 2 of .skillenv stands already in line 1%0Afix: keep one of the two lines
    ::error file=plugins/ops/skills/image/.skillenv,line=3,col=1,title=SkillenvKeyReserved::the key TFROBOT_X in .skillenv starts with TFROBOT_, which belongs to the platform%0Afix: rename the key, or delete the line: the platform sets its own variables
    ::error file=plugins/ops/skills/image/SKILL.md,line=4,col=10,title=DockerfileMissing::runtime: cubesandbox requires .cubesandbox.dockerfile, found .e2b.dockerfile%0Afix: write runtime: e2b, or rename and adapt the file: git mv .e2b.dockerfile .cubesandbox.dockerfile
    ::warning file=plugins/ops/skills/image/SKILL.md,line=5,col=1,title=FieldUnknown::the field "modle" is unknown and ignored%0Afix: move it below metadata, or leave it: it has no effect here
    ::error file=plugins/docs/skills/old/SKILL.md,title=SkillMdWrongCase::skill.md is not read: rename it to SKILL.md
    3 skills: 1 valid, 2 invalid (6 errors, 1 warning)
    "
  `);

  const sarif = await skillctl(temporary.path, 'validate', '--output', 'sarif', '.');
  expect(sarif.code).toBe(1);
  const run = JSON.parse(sarif.out).runs[0];
  const ids: string[] = run.tool.driver.rules.map((rule: { id: string }) => rule.id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const result of run.results) expect(ids[result.ruleIndex]).toBe(result.ruleId);
  expect(run.results).toHaveLength(human.out.split('\n').filter((line) => /^\S+ (?:error|warning) /.test(line)).length);
});

test('json paths are relative to the argument, whatever the current directory is', async () => {
  await using temporary = await temporaryDirectory();
  await writeTree(temporary.path, { 'market/plugins/docs/skills/word/SKILL.md': skill('word') });
  const market = await validateJson(temporary.path, 'market');
  expect(market.skills.map((one) => [one.root, one.path])).toEqual([['market', 'plugins/docs/skills/word']]);
  const plugin = await validateJson(join(temporary.path, 'market'), 'plugins/docs');
  expect(plugin.skills.map((one) => [one.root, one.path])).toEqual([['plugins/docs', 'skills/word']]);
  const single = await validateJson(join(temporary.path, 'market/plugins/docs/skills/word'), '.');
  expect(single.skills.map((one) => [one.root, one.path])).toEqual([['.', '.']]);
  const digests = [market, plugin, single].map((one) => one.skills[0]?.digest);
  expect(new Set(digests).size).toBe(1);
  expect([market.code, plugin.code, single.code]).toEqual([0, 0, 0]);
});

test('several paths are checked in the order given', async () => {
  const base = join(examples, 'plugins');
  const { skills } = await validateJson(base, 'media/skills/image-contact-sheet', 'release/skills/deploy-helper');
  expect(skills.map((one) => one.valid)).toEqual([false, true]);
});

test('in a Git work tree the index counts: staged content, modes, no untracked files', async () => {
  await using temporary = await temporaryDirectory();
  await writeTree(temporary.path, {
    'plugins/docs/skills/word/SKILL.md': skill('word'),
    'plugins/docs/skills/word/run.sh': '#!/bin/sh\n',
  });
  await git(temporary.path, 'init', '-q');
  await git(temporary.path, 'add', '--chmod=+x', 'plugins/docs/skills/word/run.sh');
  await git(temporary.path, 'add', '.');
  await writeTree(temporary.path, {
    'plugins/docs/skills/word/SKILL.md': skill('changed-after-add'),
    'plugins/docs/skills/word/untracked.txt': 'x',
  });
  const result = await validateJson(temporary.path, '.');
  expect(result.skills).toMatchObject([{ readFrom: 'git-index', valid: true, name: 'word', files: 2 }]);
  const human = await skillctl(temporary.path, 'validate', '.');
  expect(human.err).toMatchInlineSnapshot(`
    "note: . is read from Git's index: content and modes as staged, so "git add" your changes first
    "
  `);

  await git(temporary.path, 'add', '.');
  const staged = await validateJson(temporary.path, '.');
  expect(staged.skills[0]?.violations.map((one) => one.code)).toEqual(['NameMismatchesDirectory']);
});

test('a directory without any skill is an error, not a success with nothing checked', async () => {
  await using temporary = await temporaryDirectory();
  await writeTree(temporary.path, {
    'market/plugins/docs/README.md': 'x',
    'plugin/skills/_draft/notes.md': 'x',
    'other/a.txt': 'x',
  });
  const { code, out } = await skillctl(temporary.path, 'validate', 'market', 'plugin', 'other');
  expect(out).toMatchInlineSnapshot(`
    "market error NoSkillsFound  the marketplace has no skill; add one as plugins/<plugin>/skills/<skill>/SKILL.md
    plugin error NoSkillsFound  the plugin has no skill; add one as skills/<skill>/SKILL.md
    other error SkillMdMissing  the directory has no SKILL.md, no skills/ and no plugins/: add a SKILL.md, or give the path of a skill, a plugin or a marketplace
    0 skills: 0 valid, 0 invalid (3 errors, 0 warnings)
    "
  `);
  expect(code).toBe(1);
});

test('a symbolic link out of the skill is a violation and is never followed', async () => {
  await using temporary = await temporaryDirectory();
  await writeTree(temporary.path, { 'word/SKILL.md': skill('word'), 'secret.txt': 'canary-value' });
  await symlink('../secret.txt', join(temporary.path, 'word/secret.txt'));
  const { code, out } = await skillctl(temporary.path, 'validate', '--output', 'json', 'word');
  expect(code).toBe(1);
  expect(out).toContain('SymlinkInvalid');
  expect(out).not.toContain('canary-value');
});

test.each([
  ['no such directory', ['validate', 'nothing-here'], /nothing-here does not exist; give the directory/],
  ['a file', ['validate', 'package.json'], /package\.json is a file; give the directory/],
  ['no path', ['validate'], /missing required argument/],
  ['an unknown format', ['validate', '--output', 'xml', '.'], /human, json, sarif, github/],
  ['an unknown option', ['validate', '--fix', '.'], /unknown option/],
  ['an unknown command', ['lint', '.'], /unknown command/],
  ['an escape sequence in the path', ['validate', 'a\u001b[31mb'], /a\\u\{1b\}\[31mb/],
])('usage: %s ends with 2 and says why on standard error', async (_, args, message) => {
  const { code, out, err } = await skillctl(repository, ...args);
  expect(err).toMatch(message);
  expect(out).toBe('');
  expect(code).toBe(2);
});

test.each([[['--help']], [['validate', '--help']], [['pack', '--help']], [['--version']]])(
  '%j ends with 0',
  async (args) => {
    const { code, out } = await skillctl(repository, ...args);
    expect(code).toBe(0);
    expect(out).not.toBe('');
  },
);

test('an interrupted run ends with 130', async () => {
  const io = { cwd: repository, colors: false, out: () => undefined, err: () => undefined };
  expect(await runSkillctl(['validate', 'examples/marketplace'], io, AbortSignal.abort())).toBe(130);
});
