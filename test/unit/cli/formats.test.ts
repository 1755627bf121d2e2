import { expect, test } from 'vitest';
import { z } from 'zod';
import { formatGithub } from '../../../src/cli/formats/github.ts';
import { formatHuman } from '../../../src/cli/formats/human.ts';
import { formatJson } from '../../../src/cli/formats/json.ts';
import { formatSarif, type SarifRule } from '../../../src/cli/formats/sarif.ts';
import { printable } from '../../../src/cli/terminal.ts';
import { CLEAN, RESULT } from './fixture.ts';

const RULES: SarifRule[] = [
  { id: 'DockerfileMissing', level: 'error', summary: 'The runtime needs a Dockerfile.', fix: 'Add it.' },
  { id: 'NameMismatchesDirectory', level: 'error', summary: 'name differs from the directory.', fix: 'Rename one.' },
  { id: 'PathInvalid', level: 'error', summary: 'The path cannot be stored.', fix: 'Rename it.' },
  { id: 'SkillMdWrongCase', level: 'error', summary: 'The file is not named exactly SKILL.md.' },
  { id: 'FieldUnknown', level: 'warning', summary: 'The field is not part of the protocol.', fix: 'Remove it.' },
];

test('human output reads like a compiler and keeps hostile text inert', () => {
  expect(formatHuman(RESULT, { colors: false })).toMatchInlineSnapshot(`
    "market/plugins/docs/skills/pdf/SKILL.md:3:7 error NameMismatchesDirectory  name is "pdfs", but the directory is "pdf"
      fix: name: pdf
    market/plugins/docs/skills/pdf error DockerfileMissing  runtime: e2b requires .e2b.dockerfile, found none
      fix: add .e2b.dockerfile next to SKILL.md
    market/plugins/docs/skills/pdf/a,b:c%\\u{1b}[31m\\u{a}::error::x error PathInvalid  the path holds a line break\\u{a}and 100% hostile \\u{202e} text
      fix: rename the file
    market/plugins/docs/skills/pdf/SKILL.md:5 warning FieldUnknown  unknown field "modle" is ignored
      fix: remove the field
    market/plugins/docs/skills/old error SkillMdWrongCase  plugins/docs/skills/old/skill.md: rename to SKILL.md
    2 skills: 1 valid, 1 invalid (4 errors, 1 warning)
    "
  `);
});

test('human output of clean skills is the summary alone', () => {
  expect(formatHuman(CLEAN, { colors: false })).toMatchInlineSnapshot(`
    "1 skill: 1 valid, 0 invalid (0 errors, 0 warnings)
    "
  `);
});

test('colours surround the level, the place and the summary and change nothing else', () => {
  const coloured = formatHuman(RESULT, { colors: true });
  expect(coloured).toContain('\u001b[31merror\u001b[0m NameMismatchesDirectory');
  expect(coloured).toContain('\u001b[33mwarning\u001b[0m FieldUnknown');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape sequences are what is removed
  expect(coloured.replaceAll(/\u001b\[\d+m/g, '')).toBe(formatHuman(RESULT, { colors: false }));
});

test('json output is the result itself', () => {
  const text = formatJson(RESULT);
  expect(JSON.parse(text)).toEqual(RESULT);
  expect(text.endsWith('}\n')).toBe(true);
  expect(formatJson(CLEAN)).toMatchInlineSnapshot(`
    "{
      "skills": [
        {
          "root": "market",
          "path": "plugins/docs/skills/word",
          "readFrom": "folder",
          "valid": true,
          "violations": [],
          "warnings": [],
          "name": "word",
          "description": "Writes letters.",
          "runtime": "e2b::python",
          "tier": 1,
          "engine": "e2b",
          "digest": "abababababababababababababababababababababababababababababababab",
          "version": "abababababab",
          "files": 2,
          "bytes": 1234
        }
      ],
      "problems": []
    }
    "
  `);
});

test('github output is one escaped workflow command a line', () => {
  expect(formatGithub(RESULT)).toMatchInlineSnapshot(`
    "::error file=market/plugins/docs/skills/pdf/SKILL.md,line=3,col=7,title=NameMismatchesDirectory::name is "pdfs", but the directory is "pdf"%0Afix: name: pdf
    ::error file=market/plugins/docs/skills/pdf/SKILL.md,title=DockerfileMissing::runtime: e2b requires .e2b.dockerfile, found none%0Afix: add .e2b.dockerfile next to SKILL.md
    ::error file=market/plugins/docs/skills/pdf/a%2Cb%3Ac%25\\u{1b}[31m\\u{a}%3A%3Aerror%3A%3Ax,title=PathInvalid::the path holds a line break\\u{a}and 100%25 hostile \\u{202e} text%0Afix: rename the file
    ::warning file=market/plugins/docs/skills/pdf/SKILL.md,line=5,title=FieldUnknown::unknown field "modle" is ignored%0Afix: remove the field
    ::error file=market/plugins/docs/skills/old/SKILL.md,title=SkillMdWrongCase::plugins/docs/skills/old/skill.md: rename to SKILL.md
    2 skills: 1 valid, 1 invalid (4 errors, 1 warning)
    "
  `);
});

/** The parts of the SARIF 2.1.0 schema that a log of this shape must meet. */
const Sarif = z.strictObject({
  $schema: z.url(),
  version: z.literal('2.1.0'),
  runs: z
    .array(
      z.strictObject({
        tool: z.strictObject({
          driver: z.strictObject({
            name: z.string().min(1),
            version: z.string().min(1),
            rules: z.array(
              z.strictObject({
                id: z.string().min(1),
                name: z.string(),
                shortDescription: z.strictObject({ text: z.string().min(1) }),
                help: z.strictObject({ text: z.string().min(1) }).optional(),
                defaultConfiguration: z.strictObject({ level: z.enum(['none', 'note', 'warning', 'error']) }),
              }),
            ),
          }),
        }),
        columnKind: z.enum(['utf16CodeUnits', 'unicodeCodePoints']),
        results: z.array(
          z.strictObject({
            ruleId: z.string(),
            ruleIndex: z.int().min(0),
            level: z.enum(['warning', 'error']),
            message: z.strictObject({ text: z.string().min(1) }),
            locations: z
              .array(
                z.strictObject({
                  physicalLocation: z.strictObject({
                    artifactLocation: z.strictObject({
                      uri: z.string().regex(/^(?:[A-Za-z0-9\-._~!*'()/]|%[0-9A-F]{2})+$/),
                      uriBaseId: z.literal('%SRCROOT%'),
                    }),
                    region: z.strictObject({ startLine: z.int().min(1), startColumn: z.int().min(1).optional() }),
                  }),
                }),
              )
              .length(1),
          }),
        ),
      }),
    )
    .length(1),
});

test('sarif output has a rule for every result and a valid location', () => {
  const log = Sarif.parse(JSON.parse(formatSarif(RESULT, RULES, '1.2.3')));
  const run = log.runs[0];
  for (const result of run?.results ?? []) expect(run?.tool.driver.rules[result.ruleIndex]?.id).toBe(result.ruleId);
  const where = run?.results.map((result) => {
    const { artifactLocation, region } = result.locations[0]?.physicalLocation ?? {};
    return `${result.level} ${result.ruleId} ${artifactLocation?.uri} ${region?.startLine}:${region?.startColumn ?? '-'}`;
  });
  expect(where).toMatchInlineSnapshot(`
    [
      "error NameMismatchesDirectory market/plugins/docs/skills/pdf/SKILL.md 3:7",
      "error DockerfileMissing market/plugins/docs/skills/pdf/SKILL.md 1:-",
      "error PathInvalid market/plugins/docs/skills/pdf/a%2Cb%3Ac%25%1B%5B31m%0A%3A%3Aerror%3A%3Ax 1:-",
      "warning FieldUnknown market/plugins/docs/skills/pdf/SKILL.md 5:-",
      "error SkillMdWrongCase market/plugins/docs/skills/old/SKILL.md 1:-",
    ]
  `);
});

test('sarif output of clean skills has no results', () => {
  expect(Sarif.parse(JSON.parse(formatSarif(CLEAN, RULES, '1.2.3'))).runs[0]?.results).toEqual([]);
});

test.each([
  ['plain text', 'plain text'],
  ['ümlaut 技能 🎉', 'ümlaut 技能 🎉'],
  ['\u001b[2J', '\\u{1b}[2J'],
  ['a\nb\tc', 'a\\u{a}b\\u{9}c'],
  ['\u202ereversed', '\\u{202e}reversed'],
  ['zero\u200bwidth', 'zero\\u{200b}width'],
  ['tag\u{e0041}', 'tag\\u{e0041}'],
])('printable(%j) is %j', (text, expected) => {
  expect(printable(text)).toBe(expected);
});
