import { FINALIZER } from '../../api/labels.ts';
import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { MARKETPLACE_SOURCES, SKILLS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import { hasCode, KubeError } from '../../kube/errors.ts';
import { removeFinalizer } from '../../kube/finalizer.ts';
import type { Scope } from '../../kube/scope.ts';
import type { KubeObject, Resource } from '../../kube/types.ts';
import { type Leader, leadersOf } from '../cluster/lease.ts';
import { listAll } from '../cluster/objects.ts';
import type { Around } from '../cluster/requests.ts';
import { FIELD_MANAGER, type Session } from '../cluster/session.ts';
import { Progress } from '../progress.ts';
import { count } from '../terminal.ts';
import { type Inventory, isHeld } from './plan.ts';

const LOOK_MS = 1000;
const BATCH = 64;
/** Between two looks at the Lease. */
const LEASE_LOOK_MS = 20_000;
/** What no finalizer holds is gone a moment after its deletion. */
const SETTLE_MS = 10_000;
/** How long the operator may take to see that its sources are suspended. */
const SUSPEND_MS = 60_000;

/** What the removal works with. */
export interface Removal extends Around {
  session: Session;
  scope: Scope;
  /** Namespace of the operator. */
  home: string;
}

/** Objects of a kind; none where the CRD is not there (any more). */
async function present<T extends KubeObject>({ session, scope, signal }: Removal, resource: Resource): Promise<T[]> {
  try {
    return await listAll<T>(session, resource, scope, signal);
  } catch (error) {
    if (error instanceof KubeError && error.reason === 'ResourceNotFound') return [];
    throw error;
  }
}

/** Everything of both kinds in the scope. */
export async function inventoryOf(removal: Removal): Promise<Inventory> {
  return {
    sources: await present<MarketplaceSource>(removal, MARKETPLACE_SOURCES),
    skills: await present<Skill>(removal, SKILLS),
  };
}

/** A leader that works, where there is one; undefined where Leases may not be read. */
export async function leader({ session, home, clock, signal }: Removal): Promise<Leader | undefined> {
  try {
    const leaders = await leadersOf(session, home, clock, signal);
    return leaders.find(({ alive }) => alive) ?? leaders[0];
  } catch (error) {
    if (hasCode(error, 403)) return undefined;
    throw error;
  }
}

/** Merges a change into an object; no error when it is gone. */
async function merge({ session, signal }: Removal, resource: Resource, { metadata }: KubeObject, spec: object) {
  const body = { metadata: { uid: metadata.uid }, spec };
  const patch = { kind: 'merge', body, fieldManager: FIELD_MANAGER } as const;
  try {
    await session.api.patch(resource, metadata.namespace ?? '', metadata.name, patch, signal);
  } catch (error) {
    if (!(error instanceof KubeError) || (error.code !== 404 && error.code !== 409)) throw error;
  }
}

/** No source may write its Skills any more: what is written into them now would be undone. */
async function suspendAll(removal: Removal, alive: boolean): Promise<void> {
  const { clock, signal } = removal;
  const { sources } = await inventoryOf(removal);
  for (const source of sources) await merge(removal, MARKETPLACE_SOURCES, source, { suspend: true });
  const until = clock.monotonic() + SUSPEND_MS;
  while (alive && clock.monotonic() < until) {
    const now = await present<MarketplaceSource>(removal, MARKETPLACE_SOURCES);
    if (now.every(({ metadata, status }) => (status?.observedGeneration ?? -1) >= (metadata.generation ?? 0))) return;
    await clock.sleep(LOOK_MS, signal);
  }
}

/** Images and templates stay: written into the Skills themselves, after their sources no longer write them. */
export async function orphanAll(removal: Removal, alive: boolean): Promise<void> {
  await suspendAll(removal, alive);
  for (const skill of await present<Skill>(removal, SKILLS))
    await merge(removal, SKILLS, skill, { deletionPolicy: 'Orphan' });
}

async function remove({ session, signal }: Removal, resource: Resource, { metadata }: KubeObject): Promise<void> {
  if (metadata.deletionTimestamp !== undefined) return;
  const precondition = metadata.uid === undefined ? {} : { uid: metadata.uid };
  try {
    await session.api.delete(resource, metadata.namespace ?? '', metadata.name, precondition, signal);
  } catch (error) {
    // Another object of that name by now, which the next look lists.
    if (!hasCode(error, 409)) throw error;
  }
}

/** Deletes the sources, then the Skills; what has a finalizer goes later. */
export async function deleteAll(removal: Removal): Promise<void> {
  for (const resource of [MARKETPLACE_SOURCES, SKILLS]) {
    const objects = await present<KubeObject>(removal, resource);
    // The client sends as many at once as it has connections.
    for (let at = 0; at < objects.length; at += BATCH)
      await Promise.all(objects.slice(at, at + BATCH).map((object) => remove(removal, resource, object)));
  }
}

/** How the waiting ended. */
export interface Waited {
  skills: Skill[];
  /** Why it ended before all were gone. */
  why: string;
}

/** Whether somebody still works, asked now and then while a command waits. */
class Watchman {
  readonly #removal: Removal;
  #alive: boolean;
  #lookedAt = 0;

  constructor(removal: Removal, known: Leader | undefined) {
    this.#removal = removal;
    this.#alive = known?.alive ?? true;
  }

  async alive(elapsedMs: number): Promise<boolean> {
    if (this.#alive && elapsedMs - this.#lookedAt > LEASE_LOOK_MS) {
      this.#lookedAt = elapsedMs;
      this.#alive = (await leader(this.#removal))?.alive ?? true;
    }
    return this.#alive;
  }
}

/** Waits until no Skill is left; gives up when the time is up or nobody works who could let them go. */
export async function waitUntilGone(removal: Removal, timeoutMs: number, known: Leader | undefined): Promise<Waited> {
  const { io, clock, signal } = removal;
  const progress = new Progress(io, clock);
  const watchman = new Watchman(removal, known);
  let seen = { count: -1, atMs: 0 };
  try {
    for (;;) {
      const { sources, skills } = await inventoryOf(removal);
      if (sources.length + skills.length === 0) return { skills, why: '' };
      const { elapsedMs } = progress;
      if (elapsedMs >= timeoutMs)
        return { skills, why: `the time of --timeout is up (${Math.round(timeoutMs / 1000)} s)` };
      if (skills.length !== seen.count) seen = { count: skills.length, atMs: elapsedMs };
      const settled = elapsedMs - seen.atMs >= SETTLE_MS;
      if (!(await watchman.alive(elapsedMs)) && settled)
        return { skills, why: 'no operator works that could let them go' };
      const held = skills.filter(isHeld).length;
      progress.say(`${count(skills.length, 'Skill')} left, ${held} with images or templates to remove`);
      await clock.sleep(LOOK_MS, signal);
    }
  } finally {
    progress.end();
  }
}

/** Takes the operator's finalizer off Skills that are being deleted, and no other one. */
export async function release(removal: Removal, skills: readonly Skill[]): Promise<void> {
  const { session, signal } = removal;
  const writer = { api: session.api, resource: SKILLS, fieldManager: FIELD_MANAGER };
  for (const { metadata } of skills) {
    const live = await session.api.get<Skill>(SKILLS, metadata.namespace ?? '', metadata.name, signal);
    if (!live || live.metadata.uid !== metadata.uid || !isHeld(live)) continue;
    await removeFinalizer(writer, live, FINALIZER, signal);
  }
}
