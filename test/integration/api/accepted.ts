/** Tables of specs for schema.test.ts: what the API server must take. */

import { GIT_SKILL, GIT_SOURCE, generated, git, url, withRef, withURL } from './objects.ts';

export const GOOD_SOURCES = [
  { title: 'every field of a Git source', spec: GIT_SOURCE },
  { title: 'a repository on GitHub', spec: { type: 'github', github: { repository: 'acme/skills' } } },
  {
    title: 'a repository on GitHub Enterprise',
    spec: { type: 'github', github: { repository: 'acme/.github', baseURL: 'https://github.example.com/' } },
  },
  {
    title: 'an ssh address with a user name and a port',
    spec: withURL('ssh://git@git.example.com:2222/team/skills.git'),
  },
  { title: 'an ssh address without a user name', spec: withURL('ssh://git.example.com/team/skills') },
  { title: 'plain http on a port', spec: withURL('http://127.0.0.1:3000/pub/skills.git') },
  { title: 'an IPv6 address', spec: withURL('http://[::1]:3000/pub/skills.git') },
  { title: 'a home directory and percent-encoding', spec: withURL('ssh://git@host/~team/my%20skills.git') },
  { title: 'a directory of a repository', spec: { type: 'git-subdir', gitSubdir: { url, path: 'teams/docs' } } },
  {
    title: 'an archive by address',
    spec: { type: 'archive', archive: { url: 'https://example.com/s.tgz?v=1', sha256: '0'.repeat(64) } },
  },
  {
    title: 'an uploaded archive',
    spec: { type: 'archive', archive: { objectKey: `uploads/team-a/${'0'.repeat(64)}` } },
  },
  {
    title: 'files out of a ConfigMap',
    spec: {
      type: 'inline',
      inline: {
        configMapRef: { name: 'skill' },
        items: [
          { key: 'skill', path: 'SKILL.md' },
          { key: 'run.sh', path: 'scripts/run.sh', mode: 0o755 },
        ],
      },
    },
  },
  {
    title: 'webhook and proxy',
    spec: git({ webhook: { secretRef: { name: 'hook' } }, proxySecretRef: { name: 'proxy' } }),
  },
  { title: 'a full commit id', spec: withRef({ commit: 'a'.repeat(40) }) },
  { title: 'a semver range', spec: withRef({ semver: '>=1.2.0 <2.0.0 || ^3' }) },
  { title: 'a pull request', spec: withRef({ name: 'refs/pull/7/head' }) },
  { title: 'a branch with slashes and dots', spec: withRef({ branch: 'feature/v1.2_x' }) },
  { title: 'the shortest interval', spec: git({ interval: '10s' }) },
  { title: 'an interval of hours and minutes', spec: git({ interval: '1h30m' }) },
  { title: 'an interval with a fraction', spec: git({ interval: '1.5h' }) },
  {
    title: 'label keys with a domain',
    spec: git({ skillTemplate: { labels: { 'example.com/team': 'docs', plain: '' } } }),
  },
];

export const GOOD_SKILLS = [
  { title: 'a Skill with a repository of its own', spec: GIT_SKILL },
  { title: 'a skill below a sub-directory', spec: { ...GIT_SKILL, path: 'teams/a/plugins/docs/skills/pdf' } },
  { title: 'a generated Skill', spec: generated() },
  { title: 'a generated Skill of a single-folder archive', spec: generated({ path: 'pdf', plugin: 'team' }) },
  { title: 'all settings', spec: { ...GIT_SKILL, suspend: true, deletionPolicy: 'Orphan', versionHistoryLimit: 0 } },
  { title: 'names that are no DNS names', spec: generated({ plugin: 'Docs_é', path: 'plugins/Docs_é/skills/PDF x' }) },
];
