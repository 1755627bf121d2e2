import type { MarketplaceSource } from '../api/marketplacesource.ts';
import type { Skill } from '../api/skill.ts';
import type { Clock } from '../base/clock.ts';
import { Cache } from '../kube/store.ts';
import { skillState } from '../lifecycle/source-summary.ts';
import { REGISTERING, registeringAt } from './byo/registrations.ts';
import { BUILDING, isBuilding } from './byo/slots.ts';
import { BY_CONTROLLER } from './marketplacesource/controller.ts';
import { STATE, sourceState } from './measures.ts';
import { BY_NAME, nameKey } from './skill/names.ts';

/** The empty cache of the sources in these namespaces (absent: all), with every index that the controllers ask. */
export const sourceCache = (clock: Clock, namespaces: readonly string[] | undefined): Cache<MarketplaceSource> =>
  new Cache({ clock, namespaces, indexes: { [STATE]: (source) => [sourceState(source)] } });

/** The empty cache of the Skills in these namespaces (absent: all), with every index that the controllers ask. */
export const skillCache = (clock: Clock, namespaces: readonly string[] | undefined): Cache<Skill> =>
  new Cache({
    clock,
    namespaces,
    indexes: {
      [BY_CONTROLLER]: ({ metadata }) =>
        metadata.ownerReferences?.flatMap((ref) => (ref.controller ? [ref.uid] : [])) ?? [],
      [BY_NAME]: (skill) => [nameKey(skill)],
      [STATE]: (skill) => [skillState(skill)],
      [BUILDING]: (skill) => (isBuilding(skill) ? ['true'] : []),
      [REGISTERING]: registeringAt,
    },
  });
