import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSkillName } from '../../../src/protocol/names.ts';
import { RUNTIME_INFO, runtimeHint } from '../../../src/protocol/runtime.ts';
import {
  bytes,
  codePointLength,
  comparePaths,
  count,
  nearest,
  quoted,
  shellWord,
  show,
} from '../../../src/protocol/text.ts';
import { RUNTIMES } from '../../../src/protocol/types.ts';

describe('show', () => {
  it.each([
    ['plain', 'plain'],
    ['a\nb\tc\r', 'a\\nb\\tc\\r'],
    ['\u001b[31m\u202e\ud800', '\\u{1b}[31m\\u{202e}\\u{d800}'],
    ['🙂'.repeat(80), '🙂'.repeat(80)],
    ['🙂'.repeat(81), `${'🙂'.repeat(80)}…`],
  ])('shows %j as %j', (text, expected) => expect(show(text)).toBe(expected));

  it('never gives more than its limit, whatever it is given', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 20 }), (text, max) => {
        expect(codePointLength(show(text, max))).toBeLessThanOrEqual(max + 1);
      }),
    );
  });
});

describe('small helpers', () => {
  it('counts code points as iteration does', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(codePointLength(text)).toBe([...text].length);
      }),
    );
    expect(codePointLength('\ud800a\ud800')).toBe(3);
  });

  it('compares paths like their UTF-8 bytes', () => {
    const path = fc.string({ unit: 'binary', maxLength: 6 });
    fc.assert(
      fc.property(path, path, (a, b) => {
        expect(Math.sign(comparePaths(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
  });

  it('writes numbers and sizes the same everywhere', () => {
    expect([count(7), count(10_001), bytes(12), bytes(62_914_560), bytes(62_914_561)]).toEqual([
      '7',
      '10,001',
      '12 bytes',
      '60 MiB',
      '60.1 MiB',
    ]);
  });

  it('makes words that a shell takes as one', () => {
    expect(['a/b.md', 'a b', "it's", '$(x)', '-rf', 'a\nb'].map((word) => shellWord(word))).toEqual([
      'a/b.md',
      "'a b'",
      "'it'\\''s'",
      "'$(x)'",
      "'-rf'",
      '<file>',
    ]);
  });

  it('quotes YAML values', () => {
    expect([quoted('Use when: x'), quoted('"q" then'), quoted("it's \\ "), quoted('x'.repeat(99))]).toEqual([
      '"Use when: x"',
      `'"q" then'`,
      `'it''s \\'`,
      `"${'x'.repeat(80)}…"`,
    ]);
  });

  it.each([
    ['allowed_tools', 'allowed-tools'],
    ['Name', 'name'],
    ['licence', 'license'],
    ['descripton', 'description'],
    ['version', undefined],
    ['type', undefined],
    ['x'.repeat(1000), undefined],
  ])('guesses what %s was meant to be', (word, expected) => {
    expect(nearest(word, ['name', 'description', 'license', 'allowed-tools'])).toBe(expected);
  });
});

describe('names and runtimes', () => {
  it.each([
    ['a', true],
    ['a1-b2', true],
    ['a'.repeat(64), true],
    ['a'.repeat(65), false],
    ['', false],
    ['A', false],
    ['a--b', false],
    ['a\n', false],
  ])('isSkillName(%j) is %s', (name, expected) => expect(isSkillName(name)).toBe(expected));

  it('knows tier, engine and Dockerfile of every runtime', () => {
    expect(Object.keys(RUNTIME_INFO)).toEqual([...RUNTIMES]);
    expect(RUNTIMES.map((runtime) => Object.values(RUNTIME_INFO[runtime]).join(' '))).toEqual([
      '0',
      '1 cubesandbox',
      '1 cubesandbox',
      '1 e2b',
      '1 e2b',
      '2 cubesandbox .cubesandbox.dockerfile',
      '2 e2b .e2b.dockerfile',
    ]);
  });

  const own = 'use cubesandbox or e2b with your own Dockerfile';
  it.each([
    ...['shell', 'bash', 'mcp-server', 'python-data', 'python:3.12-slim', 'firecracker', 'daytona'].map((v) => [
      v,
      own,
    ]),
    ['python', 'write runtime: cubesandbox::python or runtime: e2b::python'],
    ['Node', 'write runtime: cubesandbox::node or runtime: e2b::node'],
    ['none', 'write runtime: prompt-only, or leave the field out'],
    ['e2b:python', 'did you mean runtime: e2b::python?'],
    ['cubsandbox', 'did you mean runtime: cubesandbox?'],
    ['constructor', 'write one of the seven values, or leave the field out for prompt-only'],
  ])('hints for runtime %s', (value, hint) => expect(runtimeHint(String(value))).toBe(hint));
});
