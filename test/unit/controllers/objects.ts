import type { Condition } from '../../../src/api/conditions.ts';
import { API_VERSION } from '../../../src/api/labels.ts';
import type { MarketplaceSource, MarketplaceSourceSpec } from '../../../src/api/marketplacesource.ts';
import type { Skill, SkillStatus } from '../../../src/api/skill.ts';
import { type DesiredSkill, skillObject } from '../../../src/controllers/marketplacesource/plan.ts';
import type { DiscoveredSkill } from '../../../src/marketplace/discover.ts';

/** A MarketplaceSource `team` of type git in namespace `ns`. */
export const source = (
  spec: Partial<MarketplaceSourceSpec> = {},
  rest: Partial<MarketplaceSource> = {},
): MarketplaceSource => ({
  metadata: { name: 'team', namespace: 'ns', uid: 'source-uid', generation: 1 },
  spec: { type: 'git', git: { url: 'https://git.example.com/team/skills.git' }, ...spec },
  ...rest,
});

/** A Skill `name` in namespace `ns` for the directory `plugins/docs/skills/pdf`, applied by a person. */
export const skill = (
  name: string,
  spec: Partial<Skill['spec']> = {},
  metadata: Partial<Skill['metadata']> = {},
  status?: SkillStatus,
): Skill => ({
  metadata: {
    name,
    namespace: 'ns',
    uid: `uid-${name}`,
    generation: 1,
    creationTimestamp: '2026-01-01T00:00:00Z',
    ...metadata,
  },
  spec: {
    source: { git: { url: 'https://git.example.com/team/skills.git' } },
    plugin: 'docs',
    path: 'plugins/docs/skills/pdf',
    ...spec,
  },
  ...(status ? { status } : {}),
});

/** A directory of a commit: `docs/pdf` with the tree id `tree`. */
export function directory(name: string, tree: string, hasSkillMd = true): DiscoveredSkill {
  const [plugin = '', bare = ''] = name.split('/');
  return { plugin, skill: bare, path: `plugins/${plugin}/skills/${bare}`, tree, hasSkillMd };
}

/** A condition as a status lists it. */
export const condition = (
  type: string,
  status: Condition['status'],
  reason: string,
  message = `${type} says ${reason}`,
): Condition => ({ type, status, reason, message, lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1 });

/** A version as `status.served` names it. */
export const served = (digest = 'a'.repeat(64)): NonNullable<SkillStatus['served']> => ({
  version: digest.slice(0, 12),
  digest,
  manifestSHA256: 'b'.repeat(64),
  commit: 'c'.repeat(40),
  runtime: 'prompt-only',
  files: 1,
  bytes: 10,
});

/** What the API server makes of an applied Skill: fields of other writers stay, the status stays. */
export function applied(owner: MarketplaceSource, desired: DesiredSkill, before: Skill | undefined): Skill {
  const { metadata, spec } = skillObject(owner, desired);
  return {
    apiVersion: API_VERSION,
    kind: 'Skill',
    metadata: {
      ...metadata,
      uid: before?.metadata.uid ?? `uid-${desired.name}`,
      creationTimestamp: before?.metadata.creationTimestamp ?? '2026-01-01T00:00:00Z',
    },
    spec: { ...spec, ...(before?.spec.suspend === undefined ? {} : { suspend: before.spec.suspend }) },
    ...(before?.status ? { status: before.status } : {}),
  };
}
