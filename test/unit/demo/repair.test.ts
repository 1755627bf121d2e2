import { describe, expect, test } from 'vitest';
import { urlObstacle } from '../../../scripts/lib/demo/apply.ts';
import { withDescription } from '../../../scripts/lib/demo/repair.ts';

describe('withDescription', () => {
  test('changes that line alone, whatever characters the new one has', () => {
    const file = '---\nname: a\ndescription: old one\n---\n\ndescription: in the text\n';
    expect(withDescription(file, 'description: "$& costs"')).toBe(
      '---\nname: a\ndescription: "$& costs"\n---\n\ndescription: in the text\n',
    );
  });
  test('refuses a file without such a line', () => {
    expect(() => withDescription('---\nname: a\n---\n', 'description: b')).toThrow('no line that begins with');
  });
});

describe('urlObstacle', () => {
  test.each(['https://git.example.com/team/skills.git', 'http://127.0.0.1:8080/pub/skills.git'])('takes %s', (url) => {
    expect(urlObstacle(url)).toBeUndefined();
  });
  test('refuses what the demo cannot read, before anything is started, and never repeats a password', () => {
    expect(urlObstacle('ssh://git@git.example.com/team/skills.git')).toMatchInlineSnapshot(
      `"URL must be an https:// or http:// address: the demo has no key for ssh"`,
    );
    expect(urlObstacle('/home/me/skills')).toMatchInlineSnapshot(
      `"repository URL "/home/me/skills" is not supported: use https://host/path, http://host/path or ssh://user@host/path"`,
    );
    expect(urlObstacle('git@git.example.com:team/skills.git')).toMatchInlineSnapshot(
      `"repository URL "***@git.example.com:team/skills.git" is not supported: use https://host/path, http://host/path or ssh://user@host/path"`,
    );
    expect(urlObstacle('https://me:hunter2@git.example.com/x.git')).toMatchInlineSnapshot(
      `"repository URL "https://***@git.example.com/x.git" contains a password: put username and password into the Secret of secretRef"`,
    );
  });
});
