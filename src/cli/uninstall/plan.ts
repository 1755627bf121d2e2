import { FINALIZER } from '../../api/labels.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import type { Skill, Version } from '../../api/skill.ts';
import { RUNTIME_INFO } from '../../protocol/runtime.ts';

/** Something outside the cluster that was made for a Skill. */
export interface External {
  namespace: string;
  skill: string;
  engine?: string;
  templateID?: string;
  image?: string;
}

const isOwn = ({ runtime }: Version): boolean => RUNTIME_INFO[runtime as keyof typeof RUNTIME_INFO]?.tier === 2;

/** Images and templates that the operator made for Skills, by their status; ids of platform templates never count. Pure. */
export function externalOf(skills: readonly Skill[]): External[] {
  return skills.flatMap(({ metadata, status }) => {
    const versions = [status?.served, status?.candidate, ...(status?.retired ?? [])];
    return versions.flatMap((version): External[] => {
      if (!version || !isOwn(version) || (!version.templateID && !version.image)) return [];
      const { engine, templateID, image } = version;
      return [
        {
          namespace: metadata.namespace ?? '',
          skill: metadata.name,
          ...(engine === undefined ? {} : { engine }),
          ...(templateID === undefined ? {} : { templateID }),
          ...(image === undefined ? {} : { image }),
        },
      ];
    });
  });
}

/** What is there to remove. */
export interface Inventory {
  sources: MarketplaceSource[];
  skills: Skill[];
}

/** A Skill that is still there, and who holds it. */
export interface Remaining {
  namespace: string;
  name: string;
  finalizers: string[];
  message: string;
}

/** Skills that did not go. Pure. */
export const remainingOf = (skills: readonly Skill[]): Remaining[] =>
  skills.map(({ metadata, status }) => ({
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    finalizers: metadata.finalizers ?? [],
    message: status?.conditions?.find(({ type }) => type === 'Ready')?.message ?? '',
  }));

/** Whether the finalizer of the operator is all that holds the Skill. Pure. */
export const isHeld = ({ metadata }: Skill): boolean =>
  metadata.deletionTimestamp !== undefined && (metadata.finalizers?.includes(FINALIZER) ?? false);

/** The commands that remove the rest, in their order. Pure. */
export function nextCommands(options: {
  release: string;
  namespace: string;
  /** Other namespaces still hold sources or Skills. */
  more: boolean;
}): string[] {
  const { release, namespace, more } = options;
  if (more) return ['skillctl uninstall shows what other namespaces hold'];
  return [
    `helm uninstall ${release} --namespace ${namespace}`,
    'kubectl delete crd marketplacesources.skills.tfrobot.io skills.skills.tfrobot.io',
    `kubectl delete namespace ${namespace}`,
  ];
}
