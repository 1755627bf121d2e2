import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GitMode, SkillTree, TreeFile } from '../../../src/protocol/types.ts';
import { validateSkill } from '../../../src/protocol/validate.ts';
import { VIOLATIONS } from '../../../src/protocol/violations.ts';
import { CASES } from './cases.ts';
import { briefs, file, link, rawSkillMd, skillMd, validate } from './support.ts';

describe('validateSkill', () => {
  it.each(CASES)('reports exactly what is wrong: $title', ({ tree, findings }) => {
    const report = validateSkill(tree);
    expect(briefs(report)).toEqual(findings);
    expect(report.valid).toBe(findings.every((finding) => finding.startsWith('~')));
    expect(report.files !== undefined).toBe(report.valid);
  });

  it('has a case for every code of the catalogue', () => {
    // One comes from the log of a build.
    const ofBuild = 'DockerfileSyntaxIgnored';
    const cases = CASES.flatMap(({ findings }) => findings.map((f) => f.replace('~', '').split(' ')[0]));
    const seen = new Set([ofBuild, ...cases]);
    expect(Object.keys(VIOLATIONS).filter((code) => !seen.has(code))).toEqual([]);
  });

  it('keeps every message and hint on one line and every hint short', () => {
    for (const { tree } of CASES) {
      const { violations, warnings } = validateSkill(tree);
      for (const { message, hint, code } of [...violations, ...warnings]) {
        expect(`${message}${hint}`, code).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u);
        expect(message.length, message).toBeLessThanOrEqual(300);
        expect(hint.length, hint).toBeLessThanOrEqual(200);
        expect(hint, code).not.toBe('');
      }
    }
  });

  it('gives the frontmatter and the sorted files of a valid skill', () => {
    const report = validate(
      link('b.md', 'scripts/run.sh'),
      file('scripts/run.sh', 'echo', '100755'),
      file('.skillenv', 'A=\n'),
      rawSkillMd(
        'name: pdf\ndescription: >-\n  Reads\n  files.\nruntime: e2b::node\nallowed-tools: [Read, "Bash(git add *)"]',
      ),
    );
    expect(report.frontmatter).toEqual({
      name: 'pdf',
      description: 'Reads files.',
      runtime: 'e2b::node',
      allowedTools: ['Read', 'Bash(git add *)'],
      source:
        'name: pdf\ndescription: >-\n  Reads\n  files.\nruntime: e2b::node\nallowed-tools: [Read, "Bash(git add *)"]\n',
    });
    expect(report.files?.map(({ path, mode, content }) => [path, mode, content.length])).toEqual([
      ['.skillenv', '0644', 3],
      ['SKILL.md', '0644', expect.any(Number)],
      ['b.md', '0755', 4],
      ['scripts/run.sh', '0755', 4],
    ]);
  });

  it('sorts files by the bytes of their UTF-8 paths', () => {
    const report = validate(skillMd(), file('\u{1f600}', 'x'), file('\uff5e', 'x'), file('a', 'x'));
    expect(report.files?.map(({ path }) => path)).toEqual(['SKILL.md', 'a', '\uff5e', '\u{1f600}']);
  });

  it('keeps the frontmatter when only another rule is broken', () => {
    expect(validate(skillMd(), file('.skillenv', '')).frontmatter?.name).toBe('pdf');
    expect(validate(rawSkillMd('name: pdf\ndescription: d\nlicense: 1')).frontmatter).toBeUndefined();
  });

  it('counts what exceeds 200 findings of one code and says so last', () => {
    const { violations } = validate(skillMd('', '$TFROBOT_X\n'.repeat(1_300)));
    expect(violations).toHaveLength(201);
    expect(violations.at(-1)).toMatchObject({
      code: 'PlaceholderUnknown',
      message: '1,100 more findings of this kind are not listed',
    });
  });

  it('does not depend on which of two files of the same name and size comes first', () => {
    const files = [skillMd('model: a'), skillMd('agent: a'), skillMd('hooks: a')];
    expect(validate(...files.toReversed())).toEqual(validate(...files));
  });

  it('stores the bytes as they came', () => {
    const crlf = Buffer.from('\ufeff---\r\nname: pdf\r\ndescription: "d"\r\n---\r\nbody\r\n');
    const report = validate(file('SKILL.md', crlf));
    expect(report.frontmatter).toMatchObject({ name: 'pdf', description: 'd' });
    expect(report.files?.[0]?.content).toEqual(crlf);
  });
});

const modes = fc.constantFrom<GitMode>('100644', '100755', '120000', '160000');
const names = fc.oneof(
  fc.constantFrom('SKILL.md', '.skillenv', '.e2b.dockerfile', 'a', 'A', 'a/b', '../a', 'skill.md', '.env'),
  fc.string({ unit: 'binary', maxLength: 12 }),
);
const contents = fc.oneof(
  fc.uint8Array({ maxLength: 60 }),
  fc.string({ unit: 'binary', maxLength: 60 }).map((text) => Buffer.from(text)),
  fc.string({ maxLength: 60 }).map((text) => Buffer.from(`---\nname: pdf\ndescription: ${text}\n---\n${text}`)),
  fc
    .array(
      fc.constantFrom(
        'name',
        'runtime',
        ':',
        ' ',
        '\n',
        '- ',
        '[',
        '{',
        '"',
        "'",
        '|',
        '#',
        '&a',
        '*a',
        '!t',
        '?',
        '---',
        'e2b',
        '\t',
      ),
      { maxLength: 30 },
    )
    .map((tokens) => Buffer.from(`---\nname: pdf\n${tokens.join('')}\n---\n`)),
  fc.constantFrom('a', 'A', '../a', '.skillenv', '/').map((target) => Buffer.from(target)),
);
const entries: fc.Arbitrary<TreeFile> = fc.record({ path: names, mode: modes, content: contents }).map((entry) => ({
  ...entry,
  size: entry.content.length,
}));
const trees: fc.Arbitrary<SkillTree> = fc.record({
  directory: fc.oneof(fc.constant('pdf'), fc.string({ maxLength: 8 })),
  path: fc.constant('plugins/docs/skills/pdf'),
  files: fc.array(entries, { maxLength: 8 }),
});

describe('validateSkill on anything', () => {
  it('never throws and gives only codes of the catalogue, each sorted and on one line', () => {
    fc.assert(
      fc.property(trees, (tree) => {
        const { violations, warnings, valid, files } = validateSkill(tree);
        expect(valid).toBe(violations.length === 0);
        if (files) expect(files.some(({ path }) => path === 'SKILL.md')).toBe(true);
        for (const finding of violations)
          expect(VIOLATIONS).toHaveProperty(finding.code, expect.objectContaining({ severity: 'violation' }));
        for (const finding of warnings)
          expect(VIOLATIONS).toHaveProperty(finding.code, expect.objectContaining({ severity: 'warning' }));
        for (const { message, hint } of [...violations, ...warnings])
          expect(message + hint).not.toMatch(/[\p{Cc}\p{Cs}]/u);
      }),
      { numRuns: 400 },
    );
  });

  it('gives the same report whatever the order of the files is', () => {
    const shuffled = trees.chain((tree) =>
      fc
        .shuffledSubarray(tree.files, { minLength: tree.files.length })
        .map((files) => [tree, { ...tree, files }] as const),
    );
    fc.assert(
      fc.property(shuffled, ([tree, other]) => {
        expect(validateSkill(other)).toEqual(validateSkill(tree));
      }),
      { numRuns: 300 },
    );
  });
});
