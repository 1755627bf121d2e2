import { CONFIG_MAPS, NAMESPACES } from '../api/resources.ts';
import { waiting } from '../base/errors.ts';
import { hasCode } from '../kube/errors.ts';
import type { KubeApi, KubeObject } from '../kube/types.ts';

interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

/** Kept on uninstall and part of a backup: whoever loses it loses the link to what is in the bucket. */
const NAME = 'skill-operator-installation';
const KEY = 'id';

/**
 * The id that everything outside the cluster carries, from ConfigMap skill-operator-installation in the operator's namespace.
 * Made once, from the UID of that namespace. Waiting `Forbidden` and the like where the API refuses.
 */
export async function installationId(api: KubeApi, namespace: string, signal: AbortSignal): Promise<string> {
  const found = await api.get<ConfigMap>(CONFIG_MAPS, namespace, NAME, signal);
  if (found) return idOf(found, namespace);
  const home = await api.get<KubeObject>(NAMESPACES, '', namespace, signal);
  if (!home?.metadata.uid) {
    throw waiting('InvalidSpec', `namespace "${namespace}" does not exist; create it, or set --operator-namespace`);
  }
  const body: ConfigMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: NAME, namespace },
    data: { [KEY]: home.metadata.uid },
  };
  try {
    return idOf(await api.create(CONFIG_MAPS, namespace, body, signal), namespace);
  } catch (error) {
    if (!hasCode(error, 409)) throw error;
  }
  const made = await api.get<ConfigMap>(CONFIG_MAPS, namespace, NAME, signal);
  return idOf(made ?? body, namespace);
}

function idOf(map: ConfigMap, namespace: string): string {
  const id = map.data?.[KEY] ?? '';
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(id)) {
    throw waiting(
      'InvalidSpec',
      `ConfigMap ${namespace}/${NAME} has no usable key "${KEY}"; restore it from the backup, or set --installation`,
    );
  }
  return id;
}
