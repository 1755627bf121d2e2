import type { ValidateResult } from '../../../src/cli/result.ts';

/** One valid skill, one with every kind of position, hostile text, a warning, and a layout problem. */
export const RESULT: ValidateResult = {
  skills: [
    {
      root: 'market',
      path: 'plugins/docs/skills/pdf',
      readFrom: 'folder',
      valid: false,
      violations: [
        {
          code: 'NameMismatchesDirectory',
          path: 'SKILL.md',
          line: 3,
          column: 7,
          message: 'name is "pdfs", but the directory is "pdf"',
          hint: 'name: pdf',
        },
        {
          code: 'DockerfileMissing',
          path: '',
          message: 'runtime: e2b requires .e2b.dockerfile, found none',
          hint: 'add .e2b.dockerfile next to SKILL.md',
        },
        {
          code: 'PathInvalid',
          path: 'a,b:c%\u001b[31m\n::error::x',
          message: 'the path holds a line break\nand 100% hostile \u202e text',
          hint: 'rename the file',
        },
      ],
      warnings: [
        {
          code: 'FieldUnknown',
          path: 'SKILL.md',
          line: 5,
          message: 'unknown field "modle" is ignored',
          hint: 'remove the field',
        },
      ],
    },
    {
      root: 'market',
      path: 'plugins/docs/skills/word',
      readFrom: 'folder',
      valid: true,
      violations: [],
      warnings: [],
      name: 'word',
      description: 'Writes letters.',
      runtime: 'e2b::python',
      tier: 1,
      engine: 'e2b',
      digest: 'ab'.repeat(32),
      version: 'abababababab',
      files: 2,
      bytes: 1234,
    },
  ],
  problems: [
    {
      root: 'market',
      path: 'plugins/docs/skills/old',
      reason: 'SkillMdWrongCase',
      message: 'plugins/docs/skills/old/skill.md: rename to SKILL.md',
    },
  ],
};

export const CLEAN: ValidateResult = { skills: RESULT.skills.slice(1), problems: [] };
