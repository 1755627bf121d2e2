/** Tables of sources for schema.test.ts: what the API server must refuse, and in which words. */

import { git, url, withRef, withURL } from './objects.ts';

const GIT_ONLY = 'must set exactly the member that belongs to type';
export const BAD_SOURCES: { title: string; spec: unknown; name?: string; says: string }[] = [
  { title: 'no type', spec: { git: { url } }, says: 'spec.type: Required value' },
  {
    title: 'a reserved type',
    spec: { type: 'npm' },
    says: 'spec.type: unsupported source type: must be one of github, git, git-subdir, archive, inline',
  },
  { title: 'no member', spec: { type: 'git' }, says: GIT_ONLY },
  { title: 'the member of another type', spec: { type: 'github', git: { url } }, says: GIT_ONLY },
  { title: 'two members', spec: git({ github: { repository: 'a/b' } }), says: GIT_ONLY },
  { title: 'gitSubdir with type git', spec: { type: 'git', gitSubdir: { url, path: 'a' } }, says: GIT_ONLY },
  {
    title: 'a repository without an owner',
    spec: { type: 'github', github: { repository: 'skills' } },
    says: 'spec.github.repository: must be <owner>/<name>, such as acme/skills',
  },
  {
    title: 'a repository that is an option',
    spec: { type: 'github', github: { repository: '--upload-pack=x/y' } },
    says: 'must be <owner>/<name>',
  },
  {
    title: 'a repository that climbs',
    spec: { type: 'github', github: { repository: 'acme/..' } },
    says: 'must be <owner>/<name>',
  },
  {
    title: 'a base address with a password',
    spec: { type: 'github', github: { repository: 'a/b', baseURL: 'https://u:p@github.example.com' } },
    says: 'spec.github.baseURL: must be an http:// or https:// address without user name',
  },
  {
    title: 'the scp form',
    spec: withURL('git@github.com:acme/skills.git'),
    says: 'spec.git.url: must start with https://, http:// or ssh://; for git@host:path type ssh://git@host/path',
  },
  { title: 'a local path', spec: withURL('/srv/git/skills.git'), says: 'must start with https://' },
  { title: 'a file address', spec: withURL('file:///etc'), says: 'must start with https://' },
  { title: 'a remote helper', spec: withURL('ext::sh -c id'), says: 'must start with https://' },
  {
    title: 'a user name in an https address',
    spec: withURL('https://token@github.com/a/b'),
    says: 'must not carry a user name or password; put username and password into a Secret and name it in secretRef.name',
  },
  {
    title: 'a password in an ssh address',
    spec: withURL('ssh://git:pw@github.com/a/b'),
    says: 'must not carry a password; keep the user name alone',
  },
  { title: 'a host that is an option', spec: withURL('ssh://-oProxyCommand=id/x'), says: 'must ' },
  { title: 'a query', spec: withURL(`${url}?token=1`), says: 'must not contain "?"' },
  { title: 'a path that climbs', spec: withURL('https://git.example.com/../x'), says: '".."' },
  { title: 'a line break', spec: withURL('https://git.example.com/a\nb'), says: 'control characters' },
  { title: 'an empty address', spec: withURL(''), says: 'spec.git.url' },
  {
    title: 'an absolute sub-directory',
    spec: { type: 'git-subdir', gitSubdir: { url, path: '/etc' } },
    says: 'spec.gitSubdir.path: must be a relative path',
  },
  {
    title: 'a sub-directory that climbs',
    spec: { type: 'git-subdir', gitSubdir: { url, path: 'a/../../b' } },
    says: 'must be a relative path',
  },
  {
    title: 'a sub-directory that is an option',
    spec: { type: 'git-subdir', gitSubdir: { url, path: '--output=x' } },
    says: 'must not start with "-"',
  },
  {
    title: 'a backslash in a sub-directory',
    spec: { type: 'git-subdir', gitSubdir: { url, path: 'a\\b' } },
    says: 'must be a relative path',
  },
  {
    title: 'a branch that is an option',
    spec: withRef({ branch: '--upload-pack=id' }),
    says: 'spec.ref.branch: must be a branch name such as main',
  },
  {
    title: 'a tag with a blank',
    spec: withRef({ tag: 'v 1' }),
    says: 'spec.ref.tag: must be a tag name such as v1.2.0',
  },
  {
    title: 'a branch with a refspec in it',
    spec: withRef({ branch: 'a:refs/heads/b' }),
    says: 'must be a branch name',
  },
  { title: 'a branch with two dots', spec: withRef({ branch: 'a..b' }), says: 'must be a branch name' },
  {
    title: 'a short commit id',
    spec: withRef({ commit: 'abc1234' }),
    says: 'spec.ref.commit: must be a full commit id of 40 lower-case hex digits; git rev-parse HEAD prints it',
  },
  { title: 'a commit id in upper case', spec: withRef({ commit: 'A'.repeat(40) }), says: 'must be a full commit id' },
  {
    title: 'a ref name outside refs/',
    spec: withRef({ name: 'heads/main' }),
    says: 'spec.ref.name: must start with refs/',
  },
  {
    title: 'a semver range with a shell character',
    spec: withRef({ semver: '1.0;id' }),
    says: 'spec.ref.semver: must be a range of semantic versions',
  },
  {
    title: 'a ref on an inline source',
    spec: {
      type: 'inline',
      inline: { configMapRef: { name: 'a' }, items: [{ key: 'a', path: 'SKILL.md' }] },
      ref: { branch: 'main' },
    },
    says: 'must not set ref with type archive or inline',
  },
  {
    title: 'an interval below ten seconds',
    spec: git({ interval: '9s' }),
    says: 'spec.interval: must be a duration from 10s to 168h, such as 5m or 1h30m',
  },
  { title: 'an interval without a unit', spec: git({ interval: '300' }), says: 'must be a duration from 10s' },
  { title: 'an interval above a week', spec: git({ interval: '9999h' }), says: 'must be a duration from 10s' },
  { title: 'a negative interval', spec: git({ interval: '-5m' }), says: 'must be a duration from 10s' },
  {
    title: 'a timeout of zero',
    spec: git({ timeout: '0s' }),
    says: 'spec.timeout: must be a duration from 1s to 1h, such as 60s',
  },
  {
    title: 'a Secret of another namespace',
    spec: git({ secretRef: { name: 'other/creds' } }),
    says: 'spec.secretRef.name: must be an object name',
  },
  { title: 'the same glob twice', spec: git({ include: ['a/*', 'a/*'] }), says: 'spec.include: duplicate entries' },
  {
    title: 'an unknown prune policy',
    spec: git({ prune: { policy: 'Never' } }),
    says: 'supported values: "Delete", "Keep"',
  },
  { title: 'a share above 100', spec: git({ prune: { maxPercent: 101 } }), says: 'spec.prune.maxPercent' },
  {
    title: 'a history limit above five',
    spec: git({ skillTemplate: { versionHistoryLimit: 6 } }),
    says: 'spec.skillTemplate.versionHistoryLimit',
  },
  {
    title: "the operator's own labels",
    spec: git({ skillTemplate: { labels: { 'skills.tfrobot.io/source': 'x' } } }),
    says: 'must not use keys of skills.tfrobot.io/',
  },
  {
    title: 'a label that Kubernetes refuses',
    spec: git({ skillTemplate: { labels: { team: 'a b' } } }),
    says: 'must hold label keys and values as Kubernetes takes them',
  },
  {
    title: 'an archive without its sum',
    spec: { type: 'archive', archive: { url: 'https://example.com/s.tgz' } },
    says: 'spec.archive: must set either url and sha256, or objectKey alone',
  },
  {
    title: 'an archive with a wrong sum',
    spec: { type: 'archive', archive: { url: 'https://example.com/s.tgz', sha256: 'abc' } },
    says: 'spec.archive.sha256: must be 64 lower-case hex digits',
  },
  {
    title: 'an archive over ftp',
    spec: { type: 'archive', archive: { url: 'ftp://example.com/s.tgz', sha256: '0'.repeat(64) } },
    says: 'spec.archive.url: must be an https:// or http:// address',
  },
  {
    title: 'an archive with a password',
    spec: { type: 'archive', archive: { url: 'https://u:p@example.com/s.tgz', sha256: '0'.repeat(64) } },
    says: 'must not carry a user name or password',
  },
  {
    title: 'an object key outside uploads/',
    spec: { type: 'archive', archive: { objectKey: 'packages/x/y' } },
    says: 'spec.archive.objectKey: must be the key that the upload answered',
  },
  {
    title: 'two inline items of one path',
    spec: {
      type: 'inline',
      inline: {
        configMapRef: { name: 'a' },
        items: [
          { key: 'a', path: 'SKILL.md' },
          { key: 'b', path: 'SKILL.md' },
        ],
      },
    },
    says: 'spec.inline.items: duplicate entries',
  },
  {
    title: 'an inline item that climbs',
    spec: { type: 'inline', inline: { configMapRef: { name: 'a' }, items: [{ key: 'a', path: '../x' }] } },
    says: 'must be a relative path',
  },
  {
    title: 'an inline mode of its own',
    spec: { type: 'inline', inline: { configMapRef: { name: 'a' }, items: [{ key: 'a', path: 'x', mode: 0o777 }] } },
    says: 'must be 0644 or 0755',
  },
  { title: 'a name with a dot', name: 'team.skills', spec: git(), says: 'metadata.name must be a DNS label' },
  {
    title: 'a name that is too long',
    name: 'a'.repeat(64),
    spec: git(),
    says: 'metadata.name must be a DNS label: at most 63',
  },
];

export const HOSTILE_URLS = [
  '--upload-pack=touch /tmp/x',
  'ext::sh -c touch% /tmp/x',
  'file:///etc/passwd',
  'file:/etc/passwd',
  'allowed@evil:x',
  'https://allowed@evil/x',
  'https://allowed:443@evil/x',
  'ssh://-oProxyCommand=touch/x',
  'ssh://git@-oProxyCommand=touch/x',
  'ssh://-l@host/x',
  'https:///x',
  'https://host\\@evil/x',
  'https://host/--upload-pack=x',
  'git://host/x',
  'fd::17/x',
  'https://ho st/x',
  'HTTPS://host/x',
];
