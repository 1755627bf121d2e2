// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders in braces are what is tested
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fencedLines } from '../../../src/protocol/fences.ts';
import { expandPlaceholders } from '../../../src/protocol/placeholders.ts';

const VALUES = { TFROBOT_SKILL_DIR: '/skill', TFROBOT_SESSION_ID: 'S-1', TFROBOT_ROBOT_ID: '$TFROBOT_SKILL_DIR' };

/** Lines that start with `=` are expected to be literal, those with `.` not; the marker is cut off. */
const marked = (text: string) => {
  const lines = text.split('\n');
  return { lines: lines.map((line) => line.slice(1)), literal: lines.map((line) => line.startsWith('=')) };
};

describe('fencedLines', () => {
  it.each([
    ['backticks', '.a\n=```sh\n=x\n=```\n.b'],
    ['tildes', '=~~~\n=```\n=~~~\n.b'],
    ['a longer fence around a shorter one', '=````\n=```\n=x\n=```\n=````\n.b'],
    ['a longer closing fence', '=```\n=x\n=`````\n.b'],
    ['a closing fence of the other character', '=```\n=~~~\n=```\n.b'],
    ['text after the closing fence', '=```\n=``` x\n=```\n.b'],
    ['blanks after the closing fence', '=```\n=x\n=``` \t\n.b'],
    ['no closing fence', '.a\n=```\n=x\n='],
    ['three blanks before the fences', '=   ```\n=x\n=  ```\n.b'],
    ['four blanks before the opening fence', '.    ```\n.x\n.    ```'],
    ['four blanks before the closing fence', '=```\n=x\n=    ```\n=y'],
    ['two backticks', '.``\n.x\n.``'],
    ['inline code with three backticks', '.``` x ```\n.b'],
    ['tildes with a backtick in the info string', '=~~~ `a`\n=x\n=~~~\n.b'],
    ['a fence that interrupts a paragraph', '.text\n=```\n=x\n=```\n.text'],
    ['CRLF', '=```\r\n=x\r\n=```\r\n.b'],
    ['a numbered list', '.1. run\n=   ```\n=   x\n=   ```\n.   b'],
    ['a nested list', '.- a\n.  - b\n.\n=    ```\n=    x\n=    ```\n.    c'],
    ['a fence on the line of its list marker', '.a\n=- ```\n=  x\n=  ```\n.- b'],
    ['a list item that ends before its fence is closed', '.- a\n=  ```\n=  x\n.b\n=```\n=y\n=```'],
    ['a blank line inside a fence of a list', '.- a\n=  ```\n=\n=  x\n=  ```\n.b'],
    ['a block quote', '.> a\n=> ```\n=> x\n=> ```\n.> b'],
    ['a block quote that ends before its fence is closed', '=> ```\n=> x\n.b'],
    ['a quote marker inside a fence', '=```\n=> x\n=```\n.b'],
    ['a tab as the indent of a list', '.-\ta\n.\n=\t```\n=\tx\n=\t```\n.\tb'],
    ['a thematic break is no list', '.- - -\n.    ```\n.x'],
    ['indented code in a list', '.-     ```\n.  x'],
  ])('knows %s', (_, text) => {
    const { lines, literal } = marked(text);
    expect(fencedLines(lines)).toEqual(literal);
  });

  it('gives one answer for each line of anything', () => {
    const line = fc.string({ unit: fc.constantFrom('`', '~', '>', '-', '1', '.', ' ', '\t', 'a'), maxLength: 12 });
    fc.assert(
      fc.property(fc.array(line), (lines) => {
        expect(fencedLines(lines)).toHaveLength(lines.length);
      }),
    );
  });
});

describe('expandPlaceholders', () => {
  it.each([
    ['$TFROBOT_SKILL_DIR/a', '/skill/a'],
    ['${TFROBOT_SESSION_ID}x', 'S-1x'],
    ['`$TFROBOT_SESSION_ID`', '`S-1`'],
    ['$TFROBOT_SESSION_IDs', 'S-1s'],
    ['$$TFROBOT_SESSION_ID', '$S-1'],
    ['\\$TFROBOT_SESSION_ID', '\\S-1'],
    ['    $TFROBOT_SESSION_ID', '    S-1'],
    ['$TFROBOT_ROBOT_ID', '$TFROBOT_SKILL_DIR'],
    ['$TFROBOT_SKILL_DIR2 $TFROBOT_ ${TFROBOT_SKILL_DIR', '$TFROBOT_SKILL_DIR2 $TFROBOT_ ${TFROBOT_SKILL_DIR'],
    [
      '${TFROBOT_SKILL_DIR:-x} $X $$ ${X} $ARGUMENTS TFROBOT_SKILL_DIR',
      '${TFROBOT_SKILL_DIR:-x} $X $$ ${X} $ARGUMENTS TFROBOT_SKILL_DIR',
    ],
    ['```\n$TFROBOT_SKILL_DIR\n```\r\n$TFROBOT_SKILL_DIR', '```\n$TFROBOT_SKILL_DIR\n```\r\n/skill'],
  ])('turns %j into %j', (body, expected) => {
    expect(expandPlaceholders(body, VALUES)).toBe(expected);
  });

  it('leaves every body without a placeholder as it is', () => {
    const piece = fc.constantFrom('$', '{', '}', 'TFROBOT', '_X', 'a', '\n', '\r', '```', '$$', '$TFROBOT_');
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const body = pieces.join('');
        expect(expandPlaceholders(body, VALUES)).toBe(body);
      }),
    );
  });
});
