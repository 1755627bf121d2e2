import { SKILLS } from '../../api/resources.ts';
import type { Skill, Version } from '../../api/skill.ts';
import { parsePinned } from '../../build/names.ts';
import { type Lister, pagesOf } from '../../kube/pages.ts';
import { packageThing, recordOwner, type Thing } from '../../store/sweep.ts';

/** Everything outside the cluster that the statuses of some Skills name. */
export interface References {
  /** Number of Skills. */
  skills: number;
  packages: Set<Thing>;
  /** `<namespace>/<Skill>-<engine>@<image digest>`. */
  images: Set<string>;
  /** `<namespace>/<Skill>-<engine>@<build id>` of candidates. */
  builds: Set<string>;
  /** Images by their full name, and `<engine>/<template id>`. */
  claims: Set<string>;
}

export const noReferences = (): References => ({
  skills: 0,
  packages: new Set(),
  images: new Set(),
  builds: new Set(),
  claims: new Set(),
});

/** All slots of a status: served, candidate, retired. */
export const versionsOf = ({ status }: Skill): Version[] =>
  [status?.served, status?.candidate, ...(status?.retired ?? [])].filter((version) => version !== undefined);

/** Name of a template among the claims. */
export const templateClaim = (engine: string, templateID: string): string => `${engine}/${templateID}`;

/** Adds what one Skill names. */
export function addReferences(into: References, skill: Skill): void {
  const { namespace = '', name } = skill.metadata;
  into.skills++;
  for (const { digest, engine = '', image, templateID } of versionsOf(skill)) {
    into.packages.add(packageThing(namespace, digest));
    if (templateID !== undefined) into.claims.add(templateClaim(engine, templateID));
    if (image === undefined) continue;
    into.claims.add(image);
    into.images.add(`${namespace}/${name}-${engine}@${parsePinned(image)?.digest}`);
  }
  const { candidate } = skill.status ?? {};
  if (candidate?.buildID) into.builds.add(`${namespace}/${name}-${candidate.engine}@${candidate.buildID}`);
}

/** What all Skills of the cluster name at this moment, read live page by page. */
export async function liveReferences(api: Lister, signal: AbortSignal): Promise<References> {
  const found = noReferences();
  for await (const skills of pagesOf<Skill>(api, SKILLS, {}, signal)) {
    for (const skill of skills) addReferences(found, skill);
  }
  return found;
}

/** The image behind a record as `References.images` spells it; undefined for other things and unreadable records. */
export function imageOf(thing: Thing, digest: string | undefined): string | undefined {
  const owner = recordOwner(thing);
  return owner && digest && `${owner.namespace}/${owner.skill}-${owner.engine}@${digest}`;
}

/** Whether the statuses name a package, or a record or the image behind it; `imageDigest` undefined: the record cannot be read. */
export function isReferenced(references: References, thing: Thing, imageDigest: string | undefined): boolean {
  const owner = recordOwner(thing);
  if (!owner) return references.packages.has(thing);
  const build = `${owner.namespace}/${owner.skill}-${owner.engine}@${owner.inputHash}`;
  return references.builds.has(build) || references.images.has(imageOf(thing, imageDigest) ?? '');
}
