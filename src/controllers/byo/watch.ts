import { labelValue } from '../../api/names.ts';
import { JOBS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { BUILD_ANNOTATIONS, BUILD_LABELS } from '../../build/names.ts';
import type { BuildSettings } from '../../build/settings.ts';
import { Reflector } from '../../kube/reflector.ts';
import type { KubeClient } from '../../kube/rest.ts';
import { Cache } from '../../kube/store.ts';
import type { KubeObject } from '../../kube/types.ts';

interface Surroundings {
  api: KubeClient;
  clock: Clock;
  logger: Logger;
  skills: Cache<Skill>;
  wake: (key: string) => void;
}

/** The watch over the build Jobs of this installation; a change wakes the Skill that the Job is for. */
export function buildWatch(
  { installation, namespace }: Pick<BuildSettings, 'installation' | 'namespace'>,
  { api: client, clock, logger, skills, wake }: Surroundings,
): Reflector<KubeObject> {
  const labelSelector = `${BUILD_LABELS.installation}=${labelValue(installation)}`;
  const cache = new Cache<KubeObject>({ clock });
  return new Reflector({
    client,
    resource: JOBS,
    scope: { namespace, labelSelector },
    cache,
    logger,
    clock,
    // Only that something moved matters; the pass reads the Job live.
    trim: ({ apiVersion, kind, metadata }) => ({
      ...(apiVersion ? { apiVersion } : {}),
      ...(kind ? { kind } : {}),
      metadata,
    }),
    onChange: ({ object }) => {
      const key = object.metadata.annotations?.[BUILD_ANNOTATIONS.skill];
      if (key && skills.get(key)) wake(key);
    },
  });
}
