// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders in braces are what is tested
import { expect, it } from 'vitest';
import { file, link, rawSkillMd, skillMd, texts, unread, validate } from './support.ts';

it('tells an author what is wrong in the frontmatter and what to type', () => {
  const report = validate(
    rawSkillMd(
      `name: PDF Tools\ndescription: 1.5\nruntime: mcp-server\ncompatibility: ${'x'.repeat(501)}\nallowed_tools: Read`,
    ),
  );
  expect(texts(report)).toMatchInlineSnapshot(`
    [
      "the name "PDF Tools" may only have a-z, 0-9 and single hyphens between them → write name: pdf",
      "the name "PDF Tools" is not the name of the directory, "pdf" → write name: pdf",
      "the field description must be a string, but 1.5 is a number → quote the value: description: "1.5"",
      "runtime "mcp-server" is not one of prompt-only, cubesandbox::python, cubesandbox::node, e2b::python, e2b::node, cubesandbox, e2b → use cubesandbox or e2b with your own Dockerfile",
      "the field compatibility has 501 characters, the limit is 500 → shorten it by 1 character; details belong into the body",
      "the field "allowed_tools" is unknown and ignored → did you mean allowed-tools?",
    ]
  `);
});

it('tells an author which value to quote', () => {
  const report = validate(rawSkillMd('name: pdf\ndescription: Use when: x\nlicense: `MIT`'));
  expect(texts(report)).toMatchInlineSnapshot(`
    [
      "the value contains a colon that YAML reads as another key → quote the value: description: "Use when: x"",
      "the frontmatter is not valid YAML: Plain value cannot start with reserved character \` → quote the value: license: "\`MIT\`"",
    ]
  `);
});

it('uses the words of the protocol for runtime and files', () => {
  const cube = file('.cubesandbox.dockerfile', 'FROM scratch');
  const e2b = file('.e2b.dockerfile', 'FROM debian:12-slim');
  const reports = [
    validate(skillMd('runtime: cubesandbox'), e2b),
    validate(skillMd('runtime: cubesandbox'), file('Dockerfile', 'FROM scratch')),
    validate(skillMd('runtime: e2b::python'), e2b),
    validate(skillMd('runtime: e2b'), cube, e2b),
    validate(skillMd(), file('.skillenv', 'TOKEN=abc')),
  ];
  expect(reports.flatMap(texts)).toMatchInlineSnapshot(`
    [
      "runtime: cubesandbox requires .cubesandbox.dockerfile, found .e2b.dockerfile → write runtime: e2b, or rename and adapt the file: git mv .e2b.dockerfile .cubesandbox.dockerfile",
      "runtime: cubesandbox requires .cubesandbox.dockerfile, found none → rename the file: git mv Dockerfile .cubesandbox.dockerfile",
      "runtime: e2b::python forbids .e2b.dockerfile (a Dockerfile needs runtime: e2b) → write runtime: e2b, or delete .e2b.dockerfile",
      "found .cubesandbox.dockerfile and .e2b.dockerfile, a skill can have only one of them → keep the Dockerfile of the runtime and delete the other",
      "runtime: prompt-only forbids .skillenv → delete .skillenv, or choose a runtime with a sandbox such as runtime: cubesandbox::python",
    ]
  `);
});

it('names path, count and limit of files', () => {
  const report = validate(
    skillMd('', 'See ${TFROBOT_SKIL_DIR}.'),
    link('a.md', '../../shared/a.md'),
    unread('vendor lib', 0, '160000'),
    unread('big.bin', 70 * 1024 * 1024),
    file('Skillenv', ''),
  );
  expect(texts(report)).toMatchInlineSnapshot(`
    [
      "the files of the skill have 70.1 MiB in all, the limit is 60 MiB → remove or shrink large files, or let a script download them",
      "the placeholder \${TFROBOT_SKIL_DIR} does not exist → use $TFROBOT_SKILL_DIR, $TFROBOT_SESSION_ID, $TFROBOT_ROBOT_ID, or put the text into a fenced code block to keep it as it is",
      "a.md is a symbolic link to "../../shared/a.md", which leaves the skill → replace the link with the file itself",
      "vendor lib is a Git submodule, which is not followed → commit the files themselves: git rm --cached -- 'vendor lib'",
      "Skillenv is not .skillenv and has no effect → rename it: git mv -- Skillenv .skillenv",
    ]
  `);
});

it('lists at most 20 unknown fields and counts the rest', () => {
  const fields = Array.from({ length: 23 }, (_, i) => `x${i}: 1`).join('\n');
  const { warnings } = validate(skillMd(fields));
  expect(warnings).toHaveLength(21);
  expect(warnings.at(-1)).toMatchObject({ message: '3 more unknown fields are ignored', line: 24 });
});

it('never echoes hostile text raw', () => {
  const report = validate(rawSkillMd(`name: "\\e[31m${'x'.repeat(500)}"\ndescription: d`));
  for (const text of texts(report)) {
    expect(text).not.toContain('\u001b');
    expect(text.length).toBeLessThan(400);
  }
});
