import type { MarketplaceSource } from '../api/marketplacesource.ts';
import type { Skill } from '../api/skill.ts';
import { METRICS } from '../base/metrics.catalogue.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Cache } from '../kube/store.ts';
import { BUILDING, type BuildSlots } from './byo/slots.ts';

/** Name of the index of sources and Skills by the one state in which they are counted. */
export const STATE = 'state';

/** The one state in which a source is counted. */
export function sourceState({ spec, status }: MarketplaceSource): 'ready' | 'failed' | 'progressing' | 'suspended' {
  if (spec.suspend) return 'suspended';
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  return ready === 'True' ? 'ready' : ready === 'False' ? 'failed' : 'progressing';
}

/** Sets how many objects are in which state, how many builds there are, and how long the watches have been silent. */
export function measureObjects(
  metrics: Metrics,
  caches: { sources: Cache<MarketplaceSource>; skills: Cache<Skill> },
  watches: Readonly<Record<'source' | 'skill' | 'jobs', { lastEventAgeMs: number } | undefined>>,
  slots: BuildSlots | undefined,
): void {
  for (const state of METRICS.skill_operator_sources.labels.state) {
    metrics.set('skill_operator_sources', { state }, caches.sources.count(STATE, state));
  }
  for (const state of METRICS.skill_operator_skills.labels.state) {
    metrics.set('skill_operator_skills', { state }, caches.skills.count(STATE, state));
  }
  metrics.set('skill_operator_builds_waiting', {}, slots?.waiting ?? 0);
  metrics.set('skill_operator_builds_running', {}, caches.skills.count(BUILDING, 'true'));
  const resources = { source: 'marketplacesources', skill: 'skills', jobs: 'jobs' } as const;
  for (const [name, watch] of Object.entries(watches)) {
    const resource = resources[name as keyof typeof resources];
    if (watch) metrics.set('skill_operator_watch_age_seconds', { resource }, watch.lastEventAgeMs / 1000);
  }
}
