/** The rules of heal and sweep over one listing of the bucket (docs/architecture.md, "Outside the cluster: names"). PURE. */
import type { KeySpace } from './keys.ts';
import type { ObjectInfo } from './port.ts';

/** What the sweep may delete: a package with its private parts, or the record of a built image. */
type ThingKind = 'packages' | 'images';

/** `<kind>/<namespace>/<id>`; the id is a digest, or `<Skill>-<engine>/<inputHash>.json`. Below `marks/` it is the key of the mark. */
export type Thing = string;

/** One thing as the listing shows it. */
interface StoredThing {
  kind: ThingKind;
  namespace: string;
  /** Below the root of the key space. */
  keys: Set<string>;
  /** Of its newest object, milliseconds by the store's clock. */
  lastModified: number;
}

/** The part of the bucket that heal and sweep look at. Keys that this product does not write are left out, and so left alone. */
export interface Inventory {
  things: Map<Thing, StoredThing>;
  /** Marked thing → when, milliseconds by the store's clock. */
  marks: Map<Thing, number>;
}

/** An inventory to fill with `takeStock`. */
export const emptyInventory = (): Inventory => ({ things: new Map(), marks: new Map() });

/** The thing that is a package. `namespace` and `digest` must be valid (they come from a status or a key). */
export const packageThing = (namespace: string, digest: string): Thing => `packages/${namespace}/${digest}`;

const NAMESPACE = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const PACKAGE = new RegExp(`^packages/(${NAMESPACE})/([0-9a-f]{64})/(?:manifest\\.json|package\\.tar)$`);
const PRIVATE = new RegExp(`^private/(${NAMESPACE})/([0-9a-f]{64})/(?:skillenv|Dockerfile)$`);
const RECORD = new RegExp(
  `^images/(${NAMESPACE})/([a-z0-9][a-z0-9.-]{0,252})-(cubesandbox|e2b)/([0-9a-f]{64})\\.json$`,
);
const MARKED_PACKAGE = new RegExp(`^packages/${NAMESPACE}/[0-9a-f]{64}$`);

/** Whose image a record is about, from its thing; undefined for other things. */
export function recordOwner(
  thing: Thing,
): { namespace: string; skill: string; engine: string; inputHash: string } | undefined {
  const [, namespace, skill, engine, inputHash] = RECORD.exec(thing) ?? [];
  return namespace && skill && engine && inputHash ? { namespace, skill, engine, inputHash } : undefined;
}

/** Adds one object of the listing. */
export function takeStock(inventory: Inventory, space: KeySpace, { key, lastModified }: ObjectInfo): void {
  if (!key.startsWith(space.root)) return;
  const path = key.slice(space.root.length);
  if (path.startsWith('marks/')) {
    const thing = path.slice('marks/'.length);
    if (MARKED_PACKAGE.test(thing) || RECORD.test(thing)) inventory.marks.set(thing, lastModified);
    return;
  }
  const [, namespace, digest] = PACKAGE.exec(path) ?? PRIVATE.exec(path) ?? [];
  if (namespace && digest) add(inventory, packageThing(namespace, digest), 'packages', namespace, path, lastModified);
  const owner = recordOwner(path);
  if (owner) add(inventory, path, 'images', owner.namespace, path, lastModified);
}

function add(
  { things }: Inventory,
  thing: Thing,
  kind: ThingKind,
  namespace: string,
  path: string,
  lastModified: number,
): void {
  const found = things.get(thing);
  if (!found) {
    things.set(thing, { kind, namespace, keys: new Set([path]), lastModified });
    return;
  }
  found.keys.add(path);
  found.lastModified = Math.max(found.lastModified, lastModified);
}

/** What a sweep does about marks, and what it may delete. */
export interface SweepPlan {
  /** Named by nobody and not marked yet. */
  mark: Thing[];
  /** Marked and named again, or gone. */
  lift: Thing[];
  /** Marked longer ago than the grace, and still named by nobody. */
  due: Thing[];
}

interface SweepInput {
  inventory: Inventory;
  /** Somebody needs it: a status, a worker, a ledger entry, a rule. */
  isNamed: (thing: Thing) => boolean;
  /** Milliseconds by the store's clock; the ages of marks are by the same clock. */
  storeNow: number;
  graceMs: number;
}

/** Marks to set and to lift and what is due, from one listing. A mark whose record is gone still stands for the image behind it. */
export function planSweep({ inventory, isNamed, storeNow, graceMs }: SweepInput): SweepPlan {
  const { things, marks } = inventory;
  const plan: SweepPlan = { mark: [], lift: [], due: [] };
  for (const thing of things.keys()) if (!marks.has(thing) && !isNamed(thing)) plan.mark.push(thing);
  for (const [thing, markedAt] of marks) {
    const stands = things.has(thing) || recordOwner(thing) !== undefined;
    if (!stands || isNamed(thing)) plan.lift.push(thing);
    else if (storeNow - markedAt >= graceMs) plan.due.push(thing);
  }
  return plan;
}

/** Above this share of what there is, and above three, a loss or a deletion is taken for a mistake. */
const MAX_SHARE = 0.1;
const MAX_FEW = 3;

/** Whether so many at once look like a mistake of somebody rather than like everyday life. */
export const isSuspicious = (count: number, total: number): boolean => count > MAX_FEW && count > total * MAX_SHARE;

/** Why nothing may be deleted now, or undefined. `skills` is the number of Skills in the whole cluster. */
export function sweepBlock(due: readonly Thing[], inventory: Inventory, skills: number): string | undefined {
  if (due.length === 0) return undefined;
  const [packages, images] = (['packages', 'images'] as const).map((kind) => ({
    kind: kind === 'packages' ? 'packages' : 'image records',
    due: due.filter((thing) => thing.startsWith(`${kind}/`)).length,
    stored: [...inventory.things.values()].filter((thing) => thing.kind === kind).length,
  })) as [Share, Share];
  const counts = [packages, images].filter((share) => share.due > 0).map(shareText);
  if (skills === 0) return `the cluster has no Skills at all; that would delete ${counts.join(' and ')}`;
  const many = [packages, images].filter((share) => isSuspicious(share.due, share.stored));
  if (many.length === 0) return undefined;
  return `the sweep would delete ${many.map(shareText).join(' and ')} at once`;
}

interface Share {
  kind: string;
  due: number;
  stored: number;
}

const shareText = ({ kind, due, stored }: Share): string => `${due} of ${stored} ${kind}`;

/**
 * The keys of a thing in the order in which they are deleted: the manifest, which vouches for the rest, first. All that a package may
 * have, whatever the listing showed: a writer may have added to it since.
 */
export function deletionOrder({ root }: KeySpace, thing: Thing): string[] {
  if (recordOwner(thing)) return [root + thing];
  const tail = thing.slice('packages/'.length);
  const keys = [
    'packages/TAIL/manifest.json',
    'packages/TAIL/package.tar',
    'private/TAIL/skillenv',
    'private/TAIL/Dockerfile',
  ];
  return keys.map((key) => root + key.replace('TAIL', tail));
}

/** A package that some status names. */
export interface ExpectedPackage {
  namespace: string;
  digest: string;
  /** Its image is built from it: the Dockerfile must be there too. */
  hasDockerfile: boolean;
}

/** Whether the listing shows all that can be known of a package without reading it. */
export function isStored({ things }: Inventory, { namespace, digest, hasDockerfile }: ExpectedPackage): boolean {
  const keys = things.get(packageThing(namespace, digest))?.keys;
  const tail = `${namespace}/${digest}`;
  if (!keys?.has(`packages/${tail}/manifest.json`) || !keys.has(`packages/${tail}/package.tar`)) return false;
  return !hasDockerfile || keys.has(`private/${tail}/Dockerfile`);
}
