import { describe, expect, test } from 'vitest';
import { duration, Screen, size, wrap } from '../../../scripts/lib/demo/screen.ts';

const ESC = String.fromCharCode(27);

function recorded(env: Record<string, string | undefined>, tty: boolean): { screen: Screen; text: () => string } {
  const written: string[] = [];
  const out = { isTTY: tty, columns: 80, rows: 24, write: (text: string) => written.push(text) };
  return { screen: new Screen(out, env), text: () => written.join('') };
}

describe('wrap', () => {
  test.each([
    ['one two three', 7, ['one two', 'three']],
    ['aaaaaaaaaa b', 4, ['aaaaaaaaaa', 'b']],
    ['', 10, ['']],
    ['a b\nc', 10, ['a b', 'c']],
    ['exactly ten', 11, ['exactly ten']],
  ])('breaks %j at %d', (text, width, lines) => {
    expect(wrap(text, width)).toEqual(lines);
  });
});

describe('duration and size', () => {
  test.each([
    [0, '0.0 s'],
    [449, '0.4 s'],
    [59_949, '59.9 s'],
    [59_950, '1 min 0 s'],
    [125_400, '2 min 5 s'],
  ])('%d ms are %s', (ms, text) => {
    expect(duration(ms)).toBe(text);
  });
  test.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [7168, '7.0 KiB'],
  ])('%d bytes are %s', (bytes, text) => {
    expect(size(bytes)).toBe(text);
  });
});

describe('the screen', () => {
  test.each([
    ['a terminal', {}, true, true],
    ['a terminal with NO_COLOR', { NO_COLOR: '1' }, true, false],
    ['a terminal that is dumb', { TERM: 'dumb' }, true, false],
    ['a pipe', {}, false, false],
  ])('on %s has colours or not', (_, env, tty, coloured) => {
    const { screen, text } = recorded(env, tty);
    screen.tell('done', 'green');
    expect(text().includes(`${ESC}[32m`)).toBe(coloured);
  });

  test('replaces a block in place on a terminal', () => {
    const { screen, text } = recorded({}, true);
    screen.live(['a', 'b']);
    screen.live(['c']);
    screen.say('end');
    screen.live(['d']);
    expect(text()).toBe(`   a\n   b\n${ESC}[2A\r${ESC}[J   c\n   end\n   d\n`);
  });

  test.each([
    ['in a pipe', {}, false],
    ['with CI set', { CI: 'true' }, true],
    ['on a dumb terminal', { TERM: 'dumb' }, true],
  ])('never moves the cursor %s', (_, env, tty) => {
    const { screen, text } = recorded(env, tty);
    expect(screen.liveRows).toBeUndefined();
    screen.live(['a']);
    screen.erase();
    screen.say('b');
    expect(text()).toBe('   b\n');
  });
});
