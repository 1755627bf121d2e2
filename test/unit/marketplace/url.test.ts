import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PolicyError } from '../../../src/base/errors.ts';
import { parseRemote, parseSubPath, parseUrl } from '../../../src/marketplace/url.ts';
import { thrown } from './failure.ts';

describe('parseUrl', () => {
  test.each([
    ['https://github.com/acme/skills.git', 'https://github.com/acme/skills.git', 'github.com', 443],
    ['HTTPS://GitHub.COM:443/acme/Skills/', 'https://github.com/acme/Skills', 'github.com', 443],
    ['http://gitea.default.svc:3000/a/b', 'http://gitea.default.svc:3000/a/b', 'gitea.default.svc', 3000],
    ['ssh://git@example.com/acme/skills', 'ssh://git@example.com/acme/skills', 'example.com', 22],
    ['ssh://git@example.com:2222/acme/skills', 'ssh://git@example.com:2222/acme/skills', 'example.com', 2222],
    ['https://[::1]:8443/x', 'https://[::1]:8443/x', '[::1]', 8443],
    ['https://127.0.0.1/x%20y', 'https://127.0.0.1/x%20y', '127.0.0.1', 443],
  ])('accepts %s', (url, key, host, port) => {
    expect(parseUrl(url)).toMatchObject({ key, host, port });
  });

  test.each([
    '',
    'github.com/acme/skills',
    '--upload-pack=touch /tmp/x',
    '-oProxyCommand=x',
    'ext::sh -c touch% /tmp/x',
    'ext::sh',
    'file:///etc/passwd',
    'file:/etc',
    '/srv/repo.git',
    '../repo',
    'git://example.com/x',
    'ftp://example.com/x',
    'git@github.com:acme/skills.git',
    'allowed@evil:x',
    'https://allowed.example@evil.example/x',
    'https://user@example.com/x',
    'https://user:canary-pw@example.com/x',
    'https://:canary-pw@example.com/x',
    'ssh://user:canary-pw@example.com/x',
    'ssh://-oProxyCommand=touch/x',
    'ssh://-oProxyCommand=touch@host/x',
    'ssh://git@-oProxyCommand=touch/x',
    'ssh://a b@host/x',
    'https://example.com',
    'https://example.com/',
    'https://example.com/x?token=canary-pw',
    'https://example.com/x#frag',
    'https://example.com/a/../b',
    'https://example.com/a/./b',
    'https://example.com/x%0aHost:evil',
    'https://example.com/x%00',
    'https://example.com/x y',
    'https://example.com/x\n',
    ' https://example.com/x',
    'https://example.com\\@evil/x',
    'https://exa\u202emple.com/x',
    'https://exämple.com/x',
    'https://example.com:0/x',
    'https://example.com:99999/x',
    'https://example.com:22:33/x',
    'https:///x',
    'https://example.com/"x"',
    `https://example.com/${'x'.repeat(3000)}`,
  ])('refuses %j without repeating a password', (url) => {
    const message = thrown(() => parseUrl(url));
    expect(message).toMatch(/^Stalled URLInvalid: repository URL "/);
    expect(message).not.toContain('canary-pw@');
    expect(message).not.toMatch(/\n/);
  });

  test('says what to do', () => {
    expect(thrown(() => parseUrl('git@github.com:acme/skills.git'))).toMatchInlineSnapshot(
      `"Stalled URLInvalid: repository URL "***@github.com:acme/skills.git" is not supported: use https://host/path, http://host/path or ssh://user@host/path"`,
    );
    expect(thrown(() => parseUrl('https://user:secret@example.com/x'))).toMatchInlineSnapshot(
      `"Stalled URLInvalid: repository URL "https://***@example.com/x" contains a password: put username and password into the Secret of secretRef"`,
    );
    expect(thrown(() => parseUrl('https://example.com/x?token=1'))).toMatchInlineSnapshot(
      `"Stalled URLInvalid: repository URL "https://example.com/x?***" has a query or a fragment: remove everything from "?" or "#" on"`,
    );
    expect(thrown(() => parseUrl('ssh://a+b@example.com/x'))).toMatchInlineSnapshot(
      `"Stalled URLInvalid: repository URL "ssh://***@example.com/x" has a user name with characters that ssh does not take: use letters, digits, ".", "_", "-""`,
    );
  });

  test('answers any text with a clean URL or URLInvalid', () => {
    const texts = fc.oneof(
      fc.string(),
      fc.webUrl(),
      fc.stringMatching(/^(https?|ssh):\/\/[a-z:@.-]{0,12}[/a-z:@%?#.-]{0,12}$/),
    );
    fc.assert(
      fc.property(texts, (text) => {
        try {
          const { url, key } = parseUrl(text);
          expect(url).toMatch(/^(https?|ssh):\/\/([a-z0-9_][a-z0-9_.-]*@)?[a-z0-9[]/i);
          expect(url).not.toMatch(/[\s\p{Cc}?#\\]/u);
          expect(parseUrl(url)).toMatchObject({ url, key });
        } catch (error) {
          expect(error).toBeInstanceOf(PolicyError);
        }
      }),
    );
  });
});

describe('parseSubPath', () => {
  test.each([
    ['a', 'a'],
    ['tools/skills/', 'tools/skills'],
    ['a b/ü', 'a b/ü'],
    ['..a/b..', '..a/b..'],
  ])('accepts %s', (path, clean) => {
    expect(parseSubPath(path)).toBe(clean);
  });

  test.each([
    '',
    '/',
    '/etc',
    '.',
    '..',
    'a/../b',
    'a/./b',
    'a//b',
    '-x',
    'a\\b',
    'a\nb',
    'a\0',
    '.git',
    'a/.GIT/x',
    'x'.repeat(600),
  ])('refuses %j', (path) => {
    expect(thrown(() => parseSubPath(path))).toMatch(/^Stalled PathInvalid: path "/);
  });
});

describe('parseRemote', () => {
  test('builds the address of each kind', () => {
    expect(parseRemote('github', { github: { repository: 'acme/skills' } })).toMatchObject({
      url: 'https://github.com/acme/skills.git',
      path: '',
    });
    expect(
      parseRemote('github', { github: { repository: 'acme/skills.git', baseURL: 'https://ghe.example/' } }).url,
    ).toBe('https://ghe.example/acme/skills.git');
    expect(parseRemote('git', { git: { url: 'ssh://git@h/x' } })).toMatchObject({ url: 'ssh://git@h/x', path: '' });
    expect(parseRemote('git-subdir', { gitSubdir: { url: 'https://h/x', path: 'a/b/' } })).toMatchObject({
      path: 'a/b',
    });
  });

  test.each([
    'acme',
    'acme/skills/x',
    '-acme/skills',
    'acme/..',
    '/skills',
    'acme/',
    'ac me/skills',
    'acme/sk?ills',
    '../x',
  ])('refuses the repository %j', (repository) => {
    expect(thrown(() => parseRemote('github', { github: { repository } }))).toContain('URLInvalid');
  });

  test('refuses a hostile base address and an absent member', () => {
    expect(thrown(() => parseRemote('github', { github: { repository: 'a/b', baseURL: 'file:///x' } }))).toContain(
      'URLInvalid',
    );
    expect(thrown(() => parseRemote('git-subdir', {}))).toMatchInlineSnapshot(
      `"Stalled InvalidSpec: type git-subdir needs the field spec.gitSubdir: add it"`,
    );
  });
});
