/** Specs for schema.test.ts and rbac.test.ts, and the builders of its tables. */

/** Address of every repository that is as it should be. */
export const url = 'https://git.example.com/team/skills.git';
/** A spec of a Git source. */
export const git = (extra: object = {}) => ({ type: 'git', git: { url }, ...extra });
/** A Git source at this address. */
export const withURL = (bad: string) => ({ type: 'git', git: { url: bad } });
/** A Git source with this ref. */
export const withRef = (ref: object) => git({ ref });

/** A spec that a person writes, all fields of a Git source. */
export const GIT_SOURCE = {
  type: 'git',
  git: { url },
  ref: { branch: 'main' },
  interval: '10m',
  secretRef: { name: 'git-credentials' },
  include: ['docs/*'],
  prune: { policy: 'Delete', maxPercent: 20 },
  skillTemplate: { labels: { team: 'docs' }, versionHistoryLimit: 2 },
};

/** A Skill that a person applies. */
export const GIT_SKILL = {
  source: { git: { url, ref: { tag: 'v1.0.0' } } },
  plugin: 'docs',
  path: 'plugins/docs/skills/pdf',
};

/** A Skill that a source generated. */
export const generated = (extra: object = {}) => ({
  source: { marketplaceRef: { name: 'team' } },
  plugin: 'docs',
  path: 'plugins/docs/skills/pdf',
  revision: { commit: 'a'.repeat(40), tree: 'b'.repeat(40) },
  ...extra,
});
