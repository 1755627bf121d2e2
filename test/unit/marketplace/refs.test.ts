import { describe, expect, test } from 'vitest';
import type { RefSpec } from '../../../src/marketplace/port.ts';
import { parseLsRemote, parseRef, patternsOf, pickRef, refNameProblem } from '../../../src/marketplace/refs.ts';
import { thrown } from './failure.ts';

const oid = (digit: string) => digit.repeat(40);
const lines = (...entries: [string, string][]) => entries.map(([left, name]) => `${left}\t${name}\n`).join('');
const pick = (ref: RefSpec, output: string) => pickRef(parseRef(ref), parseLsRemote(output));

describe('refNameProblem', () => {
  test.each(['main', 'release/1.0', 'refs/heads/x', 'v1.2.3+build', 'ünïcode', 'a.b', 'a-b', 'x@y', 'feature/{x}'])(
    'accepts %s',
    (name) => {
      expect(refNameProblem(name)).toBeUndefined();
    },
  );

  test.each([
    '',
    '-x',
    '--upload-pack=x',
    '/x',
    'x/',
    '.x',
    'x.',
    'a/.b',
    'a//b',
    'a..b',
    'a b',
    'a\tb',
    'a\nb',
    'a\0b',
    'a\x7f',
    'a~1',
    'a^',
    'a:b',
    'a?',
    'a*',
    'a[',
    'a\\b',
    '@',
    'a@{1}',
    'a.lock',
    'a.lock/b',
    'x'.repeat(300),
  ])('refuses %j', (name) => {
    expect(refNameProblem(name)).toBeTypeOf('string');
  });
});

describe('parseRef', () => {
  test.each<[RefSpec, object]>([
    [{}, { kind: 'head' }],
    [
      { branch: 'b', tag: 't', semver: '1.x', name: 'refs/x/y', commit: oid('A') },
      { kind: 'commit', commit: oid('a') },
    ],
    [
      { branch: 'b', tag: 't', semver: '1.x', name: 'refs/x/y' },
      { kind: 'ref', field: 'name', ref: 'refs/x/y' },
    ],
    [{ branch: 'b', tag: 't', semver: '1.x' }, { kind: 'semver' }],
    [
      { branch: 'b', tag: 't' },
      { kind: 'ref', field: 'tag', ref: 'refs/tags/t' },
    ],
    [{ branch: 'b' }, { kind: 'ref', field: 'branch', ref: 'refs/heads/b' }],
    [{ name: 'HEAD' }, { kind: 'head' }],
  ])('reads %j by precedence', (ref, query) => {
    expect(parseRef(ref)).toMatchObject(query);
  });

  test('says what is wrong and what to write', () => {
    expect(thrown(() => parseRef({ commit: 'abc123' }))).toMatchInlineSnapshot(
      `"Stalled RefInvalid: ref.commit "abc123" is not a full commit id: give all 40 hex digits"`,
    );
    expect(thrown(() => parseRef({ branch: '--upload-pack=x' }))).toMatchInlineSnapshot(
      `"Stalled RefInvalid: ref.branch "--upload-pack=x" starts with "-": write the name as "git ls-remote" lists it"`,
    );
    expect(thrown(() => parseRef({ tag: 'a b' }))).toMatchInlineSnapshot(
      `"Stalled RefInvalid: ref.tag "a b" contains characters or sequences that Git forbids in names: write the name as "git ls-remote" lists it"`,
    );
    expect(thrown(() => parseRef({ name: 'main' }))).toMatchInlineSnapshot(
      `"Stalled RefInvalid: ref.name "main" is not a full name: start it with refs/, like refs/heads/main"`,
    );
    expect(thrown(() => parseRef({ semver: 'newest' }))).toMatchInlineSnapshot(
      `"Stalled RefInvalid: ref.semver "newest" is not a version range: write it like ">=1.2.0 <2.0.0" or "1.x""`,
    );
    expect(thrown(() => parseRef({ semver: '1.'.repeat(300) }))).toContain('RefInvalid');
  });

  test('asks for the tag and what it points at', () => {
    expect(patternsOf(parseRef({ tag: 'v1' }))).toEqual(['HEAD', 'refs/tags/v1', 'refs/tags/v1^{}']);
    expect(patternsOf(parseRef({ semver: '*' }))).toEqual(['HEAD', 'refs/tags/*']);
  });
});

describe('pickRef', () => {
  const head = lines(['ref: refs/heads/trunk', 'HEAD'], [oid('1'), 'HEAD']);

  test('names the branch behind HEAD, or HEAD where the server hides it', () => {
    expect(pick({}, head)).toEqual({
      commit: oid('1'),
      revision: `trunk@sha1:${oid('1')}`,
      fetchRef: 'refs/heads/trunk',
    });
    expect(pick({}, lines([oid('1'), 'HEAD']))).toEqual({
      commit: oid('1'),
      revision: `HEAD@sha1:${oid('1')}`,
      fetchRef: 'HEAD',
    });
  });

  test('peels annotated tags and ignores refs that only end alike', () => {
    const output =
      head + lines([oid('9'), 'refs/heads/refs/tags/v1'], [oid('2'), 'refs/tags/v1'], [oid('3'), 'refs/tags/v1^{}']);
    expect(pick({ tag: 'v1' }, output)).toMatchObject({ commit: oid('3'), revision: `v1@sha1:${oid('3')}` });
  });

  test.each([
    ['*', 'v2.0.0'],
    ['1.x', '1.10.0'],
    ['~1.2', 'v1.2.9'],
    ['>=2.0.0-0', 'v2.1.0-rc.1'],
    ['=1.10.0', '1.10.0'],
  ])('chooses the highest tag in %s', (semver, tag) => {
    const tags = ['v1.2.0', 'v1.2.9', '1.10.0', 'v1.10.0', 'v2.0.0', 'v2.1.0-rc.1', 'nightly', 'v3'];
    const output = head + lines(...tags.map((name, at): [string, string] => [oid(String(at)), `refs/tags/${name}`]));
    expect(pick({ semver }, output)).toMatchObject({ fetchRef: `refs/tags/${tag}` });
  });

  test('chooses between two tags of one version by name, not by the order of the server', () => {
    for (const tags of [
      ['1.0.0', 'v1.0.0'],
      ['v1.0.0', '1.0.0'],
    ]) {
      const output = lines(...tags.map((name): [string, string] => [oid('1'), `refs/tags/${name}`]));
      expect(pick({ semver: '*' }, output).fetchRef).toBe('refs/tags/1.0.0');
    }
  });

  test('tells the empty repository and the missing ref', () => {
    expect(thrown(() => pick({}, ''))).toContain('Waiting EmptyRepository');
    expect(thrown(() => pick({ branch: 'x' }, ''))).toContain('it may be empty');
    expect(thrown(() => pick({ branch: 'x' }, head))).toMatchInlineSnapshot(
      `"Waiting RefNotFound: the repository has no refs/heads/x: push it, or correct spec.ref.branch"`,
    );
  });

  test('refuses SHA-256 repositories and skips lines it does not know', () => {
    expect(thrown(() => parseLsRemote(lines(['a'.repeat(64), 'HEAD'])))).toContain('SHA-256');
    expect(parseLsRemote('warning: something\n\tx\nzz\tHEAD\n').refs.size).toBe(0);
  });
});
