import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { splitSkillMd } from '../../../src/protocol/frontmatter.ts';
import { skillMd, validate } from './support.ts';

describe('splitSkillMd', () => {
  it.each([
    ['LF', '---\na: 1\n---\nbody\n', { frontmatter: 'a: 1\n', body: 'body\n', bodyLine: 4 }],
    ['CRLF', '---\r\na: 1\r\n---\r\nbo\r\ndy', { frontmatter: 'a: 1\n', body: 'bo\r\ndy', bodyLine: 4 }],
    ['a BOM', '\ufeff---\na: 1\n---\n', { frontmatter: 'a: 1\n', body: '', bodyLine: 4 }],
    ['no line end after the fence', '---\na: 1\n---', { frontmatter: 'a: 1\n', body: '', bodyLine: 4 }],
    ['nothing between the fences', '---\n---\nx', { frontmatter: '', body: 'x', bodyLine: 3 }],
    ['a rule in the body', '---\na: 1\n---\n\n---\nx', { frontmatter: 'a: 1\n', body: '\n---\nx', bodyLine: 4 }],
    ['four hyphens', '---\na: 1\n----\n---\n', { frontmatter: 'a: 1\n----\n', body: '', bodyLine: 5 }],
    [
      'a line separator that is no line end',
      '---\na: "x\u2028---"\n---\n',
      { frontmatter: 'a: "x\u2028---"\n', body: '', bodyLine: 4 },
    ],
  ])('takes a file with %s apart', (_, text, expected) => {
    expect(splitSkillMd(text)).toEqual({ ...expected, frontmatterLine: 2 });
  });

  it('loses no character of the body', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (body) => {
        expect(splitSkillMd(`---\na: 1\n---\n${body}`)).toMatchObject({ body });
      }),
    );
  });
});

describe('metadata', () => {
  it.each([
    ['a block', 'metadata:\n  author: team\n  version: 1.0'],
    ['a nested block', 'metadata:\n    openclaw:\n        bins: [jq]\n    n: 010'],
    ['a flow mapping', 'metadata: {v: 1.10, d: 2024-01-01}  # note'],
    ['comments and blank lines', 'metadata:\n  # first\n  a: b # z\n\n  c:\n    d: 1\n\n# end'],
    ['a block scalar that keeps its line ends', 'metadata:\n  a: |+\n    x\n\n'],
  ])('is kept as source text that means the same: %s', (_, fields) => {
    const text = validate(skillMd(fields)).frontmatter?.metadata;
    expect(fields).toContain(text?.trim());
    expect(parse(text ?? '')).toEqual(parse(`${fields}\n`).metadata);
  });
});
