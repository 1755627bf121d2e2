import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { holdSecret } from '../../../src/base/redact.ts';
import { ignoredSyntax, lastError, logTail } from '../../../src/build/log.ts';

describe('logTail', () => {
  test.each<[string, string, string]>([
    ['colours', '\u001b[1;32mok\u001b[0m', 'ok'],
    ['the title of a terminal', '\u001b]0;title\u0007text', 'text'],
    ['a cursor that moves', 'a\u001b[2Kb\u001b(Bc', 'abc'],
    ['a progress bar', '10%\r50%\r100%\nend', '100%\nend'],
    ['Windows line ends', 'a\r\nb\r\n', 'a\nb'],
    ['blank lines', 'a\n\n \nb', 'a\nb'],
    ['control and direction characters', 'a\u0000\u0007\u202eb\u200bc', 'abc'],
    ['tabs, which stay', '\ta', '\ta'],
    ['a line of Kaniko', 'time="2026-11-30T16:43:02Z" level=info msg="Args: [-c \\"x\\"]"', '[info] Args: [-c "x"]'],
    ['a word of Kaniko', 'time="2026-11-30T16:43:02Z" level=warning msg=x', '[warning] x'],
    ['a line of Kaniko for a terminal', 'WARN[0001] x  ', '[warning] x'],
    ['nothing', '', ''],
  ])('cleans %s', (_what, text, expected) => {
    expect(logTail(text)).toBe(expected);
  });

  test('keeps whole lines from the end', () => {
    expect(logTail('one\ntwo\nthree', 9)).toBe('two\nthree');
    expect(logTail('one\ntwo\nthree', 8)).toBe('three');
  });

  test('masks a secret before it cuts, so that no half of one stays', () => {
    holdSecret('correct-horse-battery');
    expect(logTail(`${'x'.repeat(995)}correct-horse-battery`)).not.toMatch(/corre/);
  });

  test('looks at the end of a long log alone, from a whole line on', () => {
    const long = `${'first '.repeat(20_000)}\n${'x'.repeat(500)}\nthe end`;
    expect(logTail(long)).toBe(`${'x'.repeat(500)}\nthe end`);
    expect(lastError(long)).toBe('the end');
    expect(logTail('y'.repeat(200_000)).length).toBe(1000);
  });

  test('never exceeds its bytes and never ends within a character', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme', maxLength: 600 }).filter((line) => !line.includes('\ufffd'))),
        fc.integer({ min: 1, max: 500 }),
        (lines, max) => {
          const tail = logTail(lines.join('\n'), max);
          expect(Buffer.byteLength(tail)).toBeLessThanOrEqual(max);
          expect(tail.isWellFormed()).toBe(true);
        },
      ),
    );
  });
});

describe('lastError', () => {
  test.each<[string, string]>([
    ['INFO[0000] x\nerror building image: error building stage: failed to get fileinfo', 'failed to get fileinfo'],
    ['error building image: a\nERRO[0002] cleaning up', 'a'],
    ['error resolving source context: b', 'error resolving source context: b'],
    ['error: package.tar could not be downloaded', 'package.tar could not be downloaded'],
    ['error building image: stat /kaniko/skill/context/src/a.py: no such file', 'stat src/a.py: no such file'],
    ['ERRO[0001] the last words', 'the last words'],
    ['', ''],
  ])('%j → %s', (text, expected) => {
    expect(lastError(text)).toBe(expected);
  });
});

describe('ignoredSyntax', () => {
  test('finds each warning of Kaniko once', () => {
    const text = [
      "WARN[0001] #969 kaniko does not support '--network' flags in RUN statements - relying on unsupported flags can lead to invalid builds",
      "WARN[0001] Kaniko does not support '--mount=type=ssh' flags in RUN statements",
      "WARN[0009] Kaniko does not support '--mount=type=ssh' flags in RUN statements",
      'time="2026-11-30T16:43:02Z" level=warning msg="#1713 kaniko does not support heredoc syntax in \'RUN [\\"<command>\\"]\'"',
      'kaniko does not support elephants',
      'WARN[0003] something else',
      'WARN[0004] MAINTAINER is deprecated, skipping',
    ];
    expect(ignoredSyntax(text.join('\n'))).toMatchInlineSnapshot(`
      [
        "kaniko does not support '--network' flags in RUN statements - relying on unsupported flags can lead to invalid builds",
        "Kaniko does not support '--mount=type=ssh' flags in RUN statements",
        "kaniko does not support heredoc syntax in 'RUN ["<command>"]'",
        "MAINTAINER is deprecated, skipping",
      ]
    `);
  });

  test('stops at five', () => {
    const text = Array.from({ length: 9 }, (_, i) => `WARN[0000] kaniko does not support flag ${i}`).join('\n');
    expect(ignoredSyntax(text)).toHaveLength(5);
  });
});
