import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkToolPath, isProtectedPath } from '../../../src/protocol/paths.ts';

const SKILL = { namespace: 'team-a', name: 'pdf' };
const URI = 'tfs-skill://team-a/pdf/0123456789ab/';

describe('checkToolPath', () => {
  it.each([
    ['references/a.md', { path: 'references/a.md' }],
    ['SKILL.md', { path: 'SKILL.md' }],
    ['a%2e%2e/b', { path: 'a%2e%2e/b' }],
    ['..a/b..', { path: '..a/b..' }],
    ['資料.md', { path: '資料.md' }],
    [`${URI}references/a.md`, { path: 'references/a.md', version: '0123456789ab' }],
    [`${URI}/references/a.md`, { path: 'references/a.md', version: '0123456789ab' }],
  ])('accepts %s', (path, expected) => {
    expect(checkToolPath(path, SKILL)).toEqual({ ok: true, ...expected });
  });

  it.each([
    ['', 'names no file'],
    ['.', 'has a . or .. segment'],
    ['../x', 'has a . or .. segment'],
    ['a/../b', 'has a . or .. segment'],
    ['./a', 'has a . or .. segment'],
    ['/etc/passwd', 'is absolute'],
    ['a//b', 'has an empty segment'],
    ['a/', 'has an empty segment'],
    ['a\\b', 'contains a backslash'],
    ['a\0', 'contains a NUL character'],
    ['a\ud800', 'is not valid UTF-8'],
    ['a\ufffd', 'is not valid UTF-8'],
    ['a'.repeat(513), 'is longer than 512 bytes'],
    [URI, 'names no file'],
    [`${URI}//a`, 'is absolute'],
    [`${URI}../other/0123456789ab/a`, 'has a . or .. segment'],
    ['tfs-skill://team-b/pdf/0123456789ab/a', 'belongs to another skill'],
    ['tfs-skill://team-a/csv/0123456789ab/a', 'belongs to another skill'],
    ['tfs-skill://team-a/pdf/latest/a', 'is not of the form'],
    ['tfs-skill:a', 'is not of the form'],
  ])('refuses %j', (path, why) => {
    const answer = checkToolPath(path, SKILL);
    expect(answer).toMatchObject({ ok: false, reason: 'PathRefused', message: expect.stringContaining(why) });
  });

  it('answers for a protected file with the words of the contract', () => {
    expect(checkToolPath(`${URI}.skillenv`, SKILL)).toMatchInlineSnapshot(`
      {
        "message": "403 access denied: protected file",
        "ok": false,
        "reason": "PathProtected",
      }
    `);
  });

  it('says what to give instead', () => {
    expect(checkToolPath('../a', SKILL)).toMatchInlineSnapshot(`
      {
        "message": "the path "../a" has a . or .. segment; give a path relative to the skill's root, such as references/guide.md",
        "ok": false,
        "reason": "PathRefused",
      }
    `);
  });

  it('never lets anything but a clean, unprotected, relative path through', () => {
    const part = fc.constantFrom(
      '..',
      '.',
      '/',
      '\\',
      'a',
      '.skillenv',
      '.e2b.dockerfile',
      'tfs-skill://team-a/pdf/0123456789ab',
      '\0',
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        const answer = checkToolPath(parts.join(''), SKILL);
        if (!answer.ok) return;
        expect(answer.path.split('/').every((s) => s !== '' && s !== '.' && s !== '..')).toBe(true);
        expect(isProtectedPath(answer.path)).toBe(false);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('isProtectedPath', () => {
  it.each([
    '.skillenv',
    'a/.SKILLENV',
    'x.skillenv.bak',
    '.e2b.dockerfile',
    'a/b/.CubeSandbox.Dockerfile',
    '..dockerfile',
    '.a.b.dockerfile',
  ])('protects %s', (path) => expect(isProtectedPath(path)).toBe(true));
  it.each([
    'Dockerfile',
    'e2b.dockerfile',
    '.dockerfile',
    'skillenv',
    '.env',
    '.skillenv/readme.md',
    '.a.dockerfile.md',
  ])('does not protect %s', (path) => expect(isProtectedPath(path)).toBe(false));
});
