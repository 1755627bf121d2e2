/** Table of Skills for schema.test.ts: what the API server must refuse, and in which words. */

import { GIT_SKILL, generated, url } from './objects.ts';

export const BAD_SKILLS = [
  {
    title: 'no source',
    spec: { ...GIT_SKILL, source: {} },
    says: 'spec.source: must set exactly one of marketplaceRef and git',
  },
  {
    title: 'both sources',
    spec: { ...GIT_SKILL, source: { marketplaceRef: { name: 'a' }, git: { url } } },
    says: 'must set exactly one of marketplaceRef and git',
  },
  {
    title: 'a revision with its own repository',
    spec: { ...GIT_SKILL, revision: { commit: 'a'.repeat(40), tree: 'b'.repeat(40) } },
    says: 'must not set revision with source.git; pin a commit with source.git.ref.commit',
  },
  {
    title: 'a path that is no skill directory',
    spec: { ...GIT_SKILL, path: 'docs/pdf' },
    says: 'must have a path that ends in plugins/<plugin>/skills/<skill>, such as plugins/docs/skills/pdf',
  },
  {
    title: 'a path below a skill directory',
    spec: { ...GIT_SKILL, path: 'plugins/docs/skills/pdf/x' },
    says: 'must have a path that ends in',
  },
  {
    title: 'a plugin that the path does not name',
    spec: { ...GIT_SKILL, plugin: 'web' },
    says: 'must have the plugin that the path names',
  },
  {
    title: 'a plugin that an outer directory of the path names',
    spec: { ...GIT_SKILL, plugin: 'web', path: 'plugins/web/skills/plugins/docs/skills/pdf' },
    says: 'must have the plugin that the path names',
  },
  {
    title: 'a plugin with a slash',
    spec: generated({ plugin: 'a/b' }),
    says: 'spec.plugin: must be the name of one directory',
  },
  {
    title: 'a plugin that is an option',
    spec: generated({ plugin: '-x' }),
    says: 'spec.plugin: must be the name of one directory',
  },
  {
    title: 'a path that climbs',
    spec: generated({ path: '../plugins/docs/skills/pdf' }),
    says: 'spec.path: must be a relative path',
  },
  { title: 'a path that is an option', spec: generated({ path: '-o/x' }), says: 'spec.path: must not start with "-"' },
  {
    title: 'a short tree id',
    spec: generated({ revision: { commit: 'a'.repeat(40), tree: 'b' } }),
    says: 'spec.revision.tree: must be a full Git object id',
  },
  {
    title: 'a revision without a tree',
    spec: generated({ revision: { commit: 'a'.repeat(40) } }),
    says: 'spec.revision.tree: Required value',
  },
  {
    title: 'an unknown deletion policy',
    spec: generated({ deletionPolicy: 'Keep' }),
    says: 'supported values: "Delete", "Orphan"',
  },
  {
    title: 'an interval below ten seconds',
    spec: { ...GIT_SKILL, source: { git: { url, interval: '1s' } } },
    says: 'spec.source.git.interval: must be a duration from 10s',
  },
  { title: 'no plugin', spec: { source: GIT_SKILL.source, path: GIT_SKILL.path }, says: 'spec.plugin: Required value' },
];
