import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseSkillenv } from '../../../src/protocol/skillenv.ts';

const parse = (text: string) => parseSkillenv(Buffer.from(text));

describe('parseSkillenv', () => {
  it.each([
    ['a literal', 'LOG_LEVEL=INFO', [{ kind: 'literal', key: 'LOG_LEVEL', value: 'INFO', line: 1 }]],
    ['a reference into the vault', '# token\n\nTOKEN=\n', [{ kind: 'vault', key: 'TOKEN', line: 3 }]],
    ['an equals sign in the value', 'A=b=c', [{ kind: 'literal', key: 'A', value: 'b=c', line: 1 }]],
    [
      'quotes, dollars, hashes and blanks',
      `A= "x" $Y \${Z} # no comment `,
      [{ kind: 'literal', key: 'A', value: ` "x" $Y \${Z} # no comment `, line: 1 }],
    ],
    ['one blank as value', 'A= ', [{ kind: 'literal', key: 'A', value: ' ', line: 1 }]],
    ['an underscore first', '_A1=x', [{ kind: 'literal', key: '_A1', value: 'x', line: 1 }]],
    ['nothing', '', []],
  ])('reads %s', (_, text, entries) => {
    expect(parse(text)).toEqual({ entries, violations: [] });
  });

  it('leaves out what is broken and keeps the rest', () => {
    const { entries, violations } = parse('A=1\nA=2\nb=3\nTFROBOT_X=4\nC=5');
    expect(entries.map(({ key }) => key)).toEqual(['A', 'C']);
    expect(violations.map(({ code, line }) => [code, line])).toEqual([
      ['SkillenvKeyDuplicate', 2],
      ['SkillenvKeyInvalid', 3],
      ['SkillenvKeyReserved', 4],
    ]);
  });

  it.each([
    ['export A=1', 'delete the word export'],
    [' A=1', 'delete the blanks around the key'],
    ['A =1', 'delete the blanks around the key'],
    ['token=1', 'write the key in capital letters'],
    ['1A=1', 'use A-Z, 0-9 and _ in the key, not starting with a digit'],
    [' # A=1', 'a comment starts with # in the first column'],
    [' # a', 'a comment starts with # in the first column'],
    ['abc', 'write KEY=VALUE, or KEY= for a value from the vault; a value has one line'],
  ])('says how to mend %j', (line, hint) => {
    expect(parse(line).violations).toMatchObject([{ hint }]);
  });

  it('never repeats a value or a line that it cannot read', () => {
    const secret = fc.stringMatching(/^[a-z0-9+/]{12,40}$/);
    const line = fc.constantFrom('A=', 'a=', '', 'export A=', 'TFROBOT_A=', 'PATH=', ' ');
    fc.assert(
      fc.property(fc.array(fc.tuple(line, secret)), (lines) => {
        const { violations } = parse(lines.map((parts) => parts.join('')).join('\n'));
        const said = JSON.stringify(violations);
        for (const [, value] of lines) expect(said).not.toContain(value);
      }),
    );
  });
});
