import { ANNOTATIONS, LABELS, MANAGED_BY } from '../../api/labels.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { labelValue } from '../../api/names.ts';
import type { Skill, SkillSpec } from '../../api/skill.ts';
import { hashOf } from '../hash.ts';

/** The part of a generated Skill that the source controller owns. */
export interface OwnedFields {
  spec: SkillSpec;
  labels: Record<string, string>;
  /** Name of the Skill that takes over the bare name. */
  handover?: string | undefined;
}

/** The labels of the source that its Skills carry too, so that the selector of a shard finds both. */
export const followedLabels = ({ metadata }: MarketplaceSource, followed: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    followed.flatMap((key) => (metadata.labels?.[key] === undefined ? [] : [[key, metadata.labels[key]]])),
  );

/** Labels of every Skill of the source but the plugin's. */
export function baseLabels(source: MarketplaceSource, followed: readonly string[]): Record<string, string> {
  return {
    ...source.spec.skillTemplate?.labels,
    ...followedLabels(source, followed),
    [LABELS.source]: labelValue(source.metadata.name),
    [LABELS.sourceUID]: source.metadata.uid ?? '',
    [LABELS.managedBy]: MANAGED_BY,
  };
}

/** Fields of the spec that a template may set; where it does not, they are the person's who sets them. */
const TEMPLATE_FIELDS = ['deletionPolicy', 'versionHistoryLimit'] as const;

/** Which fields of its Skills a source owns; follows from its template. */
export class Ownership {
  /** Changes when a field joins or leaves: then every Skill has to be applied, since a field that left shows in none of the others. */
  readonly id: string;
  readonly #labels: string[];
  readonly #foreign: string[];
  /** Changes with whatever the source puts into all its Skills alike. */
  readonly #alike: string;

  /** @param followed Labels of the source that its Skills carry too. */
  constructor(source: MarketplaceSource, followed: readonly string[] = []) {
    const template = source.spec.skillTemplate;
    const labels = baseLabels(source, followed);
    this.#labels = [...Object.keys(labels), LABELS.plugin].sort();
    // suspend is never the controller's.
    this.#foreign = ['suspend', ...TEMPLATE_FIELDS.filter((field) => template?.[field] === undefined)];
    this.id = hashOf({ labels: this.#labels, foreign: this.#foreign }).slice(0, 8);
    this.#alike = hashOf({ name: source.metadata.name, labels, template });
  }

  /** What the source owns of a Skill in the cache. */
  of(skill: Skill): OwnedFields {
    const { labels = {}, annotations } = skill.metadata;
    const spec = Object.entries(skill.spec).filter(([field]) => !this.#foreign.includes(field));
    return {
      spec: Object.fromEntries(spec) as SkillSpec,
      labels: Object.fromEntries(
        this.#labels.flatMap((key) => (labels[key] === undefined ? [] : [[key, labels[key]]])),
      ),
      handover: annotations?.[ANNOTATIONS.handover],
    };
  }

  /** The same as a hash, to compare. */
  fingerprint(skill: Skill): string {
    return remembered(ofCached, skill, this.id, () => fingerprintOf(this.of(skill)));
  }

  /** The hash of what a Skill shall have. While `now` has the same content it is the last one of that object: a pass changes few of many. */
  fingerprintOfWanted(fields: OwnedFields, now: Skill | undefined): string {
    if (!now || !isSameContent(fields, now)) return fingerprintOf(fields);
    return remembered(ofWanted, now, this.#alike, () => fingerprintOf(fields));
  }
}

const isSameContent = ({ spec, handover }: OwnedFields, now: Skill): boolean =>
  handover === undefined && spec.path === now.spec.path && spec.revision?.tree === now.spec.revision?.tree;

/** The last fingerprint by the object of the cache, and what else it depends on. */
type Fingerprints = WeakMap<Skill, { id: string; hash: string }>;

const ofCached: Fingerprints = new WeakMap();
const ofWanted: Fingerprints = new WeakMap();

/** Objects of a cache never change, so each is looked at once. */
function remembered(fingerprints: Fingerprints, skill: Skill, id: string, make: () => string): string {
  const known = fingerprints.get(skill);
  if (known?.id === id) return known.hash;
  const hash = make();
  fingerprints.set(skill, { id, hash });
  return hash;
}

/** Owned fields as a hash; equal ones need no apply. */
const fingerprintOf = ({ spec, labels, handover }: OwnedFields): string => hashOf({ spec, labels, handover });
