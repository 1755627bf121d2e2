import { DEFAULTS, effectiveSkill, effectiveSource } from '../../../src/api/defaults.ts';

/** Milliseconds as people write a duration: `5m`, `60s`. */
const duration = (ms: number): string => (ms % 60_000 === 0 && ms > 60_000 ? `${ms / 60_000}m` : `${ms / 1000}s`);

/**
 * What counts while a field of the spec is absent, by path, as the code works it out from an empty spec.
 * @param kind `MarketplaceSource` or `Skill`.
 */
export function specDefaults(kind: string): ReadonlyMap<string, string> {
  const skill = effectiveSkill({ source: {}, plugin: 'p', path: 'plugins/p/skills/s' });
  const ofSkill = (prefix: string): [string, string][] => [
    [`${prefix}.deletionPolicy`, skill.deletionPolicy],
    [`${prefix}.versionHistoryLimit`, String(skill.versionHistoryLimit)],
  ];
  if (kind === 'Skill')
    return new Map([
      ['spec.source.git.interval', duration(skill.intervalMs)],
      ['spec.source.git.timeout', duration(skill.timeoutMs)],
      ['spec.suspend', String(skill.suspend)],
      ...ofSkill('spec'),
    ]);
  const source = effectiveSource({ type: 'git' });
  return new Map([
    ['spec.github.baseURL', DEFAULTS.githubBaseURL],
    ['spec.inline.items[].mode', '0644'],
    ['spec.interval', duration(source.intervalMs)],
    ['spec.timeout', duration(source.timeoutMs)],
    ['spec.suspend', String(source.suspend)],
    ['spec.prune.policy', source.prune.policy],
    ['spec.prune.maxPercent', String(source.prune.maxPercent)],
    ...ofSkill('spec.skillTemplate'),
  ]);
}
