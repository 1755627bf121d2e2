import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Sweeper, SweeperDeps } from '../../../src/controllers/sweep/sweeper.ts';
import { imageKey, uploadKey } from '../../../src/store/keys.ts';
import type { BuiltPackage } from '../../../src/store/package.types.ts';
import type { ObjectStore } from '../../../src/store/port.ts';
import { packageThing } from '../../../src/store/sweep.ts';
import { promptOnly, withPrivateParts } from '../../contract/store/samples.ts';
import { eventually } from '../../support/eventually.ts';
import { newRig, objectsOf, type Rig, serves, signal } from './rig.ts';

const info = inject('cluster');
const HOUR = 3_600_000;
const rigs: Rig[] = [];

async function rigFor(over: { bucket?: string } = {}): Promise<Rig> {
  const rig = await newRig(info, over);
  rigs.push(rig);
  return rig;
}
afterAll(async () => {
  for (const rig of rigs) await rig[Symbol.asyncDispose]();
});

const put = async (rig: Rig, ...all: BuiltPackage[]) => {
  for (const built of all) await rig.packages.put(rig.namespace, built, signal);
};
const markOf = (rig: Rig, { digest }: BuiltPackage) => `marks/${packageThing(rig.namespace, digest)}`;
const merged = (...lists: (string | string[])[]) => lists.flat().sort();

describe('a sweep', () => {
  let rig: Rig;
  const [served, old, both] = [promptOnly('served'), withPrivateParts('old'), promptOnly('kept')];
  beforeAll(async () => {
    rig = await rigFor();
    await put(rig, served, old, both);
    const { served: version } = serves(both);
    await rig.skill('pdf', {
      ...serves(served),
      retired: [{ ...(version as never as object), state: 'Kept' } as never],
    });
  });

  test('marks what no slot of any Skill names, and nothing else', async () => {
    await rig.sweeper({ graceMs: HOUR }).run(signal);
    const packages = [served, old, both].map((built) => objectsOf(rig, built));
    expect(await rig.keys()).toEqual(merged(...packages, markOf(rig, old)));
    expect(await rig.counted('marked')).toBe(1);
  });

  test('leaves it until the grace is over, by the clock of the store', async () => {
    await rig.sweeper({ graceMs: HOUR }).run(signal);
    expect(await rig.keys()).toEqual(expect.arrayContaining(objectsOf(rig, old)));
    expect(await rig.counted('marked')).toBe(1);
  });

  test('lifts the mark of what is named again', async () => {
    await rig.skill('odt', serves(old));
    await rig.sweeper().run(signal);
    expect(await rig.keys()).toEqual(merged(...[served, old, both].map((built) => objectsOf(rig, built))));
    await rig.setStatus('odt', { ...serves(served) });
    await rig.sweeper({ graceMs: HOUR }).run(signal);
    expect(await rig.keys()).toContain(markOf(rig, old));
  });

  test('waits for a worker that is about to name it', async () => {
    await rig.pins.hold(packageThing(rig.namespace, old.digest), 'worker', signal);
    await rig.sweeper().run(signal);
    expect(await rig.keys()).toEqual(expect.arrayContaining(objectsOf(rig, old)));
    rig.pins.release('worker');
  });

  test('deletes it after the grace with its private parts and its mark', async () => {
    await rig.sweeper().run(signal);
    await rig.sweeper().run(signal);
    expect(await rig.keys()).toEqual(merged(objectsOf(rig, served), objectsOf(rig, both)));
    expect(await rig.counted('package_deleted')).toBe(1);
    for (const built of [served, both]) {
      const { state } = await rig.packages.verify(rig.namespace, built.digest, built.manifestSHA256, signal);
      expect(state).toBe('intact');
    }
  });

  test('costs no write and one list when there is nothing to do', async () => {
    const before = { ...rig.store.requests };
    await rig.sweeper().run(signal);
    const { list, ...others } = rig.store.requests;
    expect(list - before.list).toBe(1);
    expect({ ...others, list: before.list }).toEqual(before);
  });
});

/** The store, until a number of deletions have been made; then the process is gone. */
function dyingAfter(store: ObjectStore, deletions: number): ObjectStore {
  let left = deletions;
  const dying = Object.create(store) as ObjectStore;
  for (const name of ['head', 'get', 'putIfAbsent', 'put', 'list'] as const) {
    Object.defineProperty(dying, name, { value: store[name].bind(store) });
  }
  dying.delete = async (key, s) => {
    if (left-- <= 0) throw new Error('killed');
    await store.delete(key, s);
  };
  return dying;
}

test('a sweep that dies after any of its deletions is finished by the next, and what returns meanwhile is whole', async () => {
  const rig = await rigFor();
  const keep = promptOnly('keep');
  await put(rig, keep);
  await rig.skill('keep', serves(keep));
  for (let deletions = 0; deletions <= 4; deletions++) {
    const built = withPrivateParts(`half ${deletions}`);
    await put(rig, built);
    await rig.sweeper().run(signal);
    const dying: Sweeper = rig.sweeper({ store: dyingAfter(rig.store, deletions) });
    await expect(dying.run(signal)).rejects.toThrow('killed');
    // A claim never outlives its sweep.
    expect(rig.pins.claim(packageThing(rig.namespace, built.digest))?.[Symbol.dispose]()).toBeUndefined();
    if (deletions % 2 === 0) {
      await put(rig, built);
      const { state } = await rig.packages.verify(rig.namespace, built.digest, built.manifestSHA256, signal);
      expect(state).toBe('intact');
    }
    await rig.sweeper().run(signal);
    expect(await rig.keys()).toEqual(objectsOf(rig, keep));
  }
});

test('uploads, keys of nobody and another installation of the same bucket are left alone', async () => {
  const rig = await rigFor();
  const other = await rigFor({ bucket: rig.bucket });
  const built = promptOnly('theirs');
  await put(other, built);
  await other.skill('theirs', serves(built));
  const foreign = [
    uploadKey(rig.space, rig.namespace, 'd'.repeat(64)),
    `${rig.space.root}notes.txt`,
    `${rig.space.root}packages/README`,
  ];
  for (const key of foreign) await rig.store.put(key, Buffer.from('x'), 'text/plain', signal);
  // To this one, which sees other Skills, the other's package would be rubbish.
  const mine = promptOnly('mine');
  await put(rig, mine);
  await rig.skill('mine', serves(mine));
  for (let i = 0; i < 3; i++) await rig.sweeper().run(signal);
  expect(await other.keys()).toEqual(objectsOf(other, built));
  expect(await rig.keys()).toEqual(
    merged(
      objectsOf(rig, mine),
      foreign.map((key) => key.slice(rig.space.root.length)),
    ),
  );
});

describe('a sweep that would delete too much', () => {
  const annotate = async (rig: Rig, value: string) =>
    await rig.k8s.annotate(
      { apiVersion: 'v1', kind: 'ConfigMap', name: 'skill-operator-state', namespace: rig.home },
      { 'skills.tfrobot.io/allow-sweep': value },
    );

  test('waits for a person, who allows what was due by then and no more', async () => {
    const rig = await rigFor();
    const [keep, ...rest] = ['keep', '1', '2', '3', '4'].map(promptOnly) as [BuiltPackage, ...BuiltPackage[]];
    await put(rig, keep, ...rest);
    await rig.skill('keep', serves(keep));
    await rig.sweeper().run(signal);
    expect(await rig.sweeper().run(signal)).toEqual({ blocked: true });
    expect(await rig.keys()).toEqual(expect.arrayContaining(rest.flatMap((built) => objectsOf(rig, built))));
    const { token, message, allow } = JSON.parse((await rig.stateMap())?.data.SweepBlocked);
    expect(message).toBe('the sweep would delete 4 of 5 packages at once; nothing is deleted until that is allowed');
    expect(allow).toBe(
      `kubectl -n ${rig.home} annotate --overwrite configmap skill-operator-state skills.tfrobot.io/allow-sweep=${token}`,
    );
    expect(rig.notes).toEqual([`SweepBlocked: ${message}; if that is meant: ${allow}`]);

    // Once more changes nothing, and another token lifts nothing.
    const version = (await rig.stateMap())?.metadata.resourceVersion;
    expect(version).toBeDefined();
    await rig.sweeper().run(signal);
    expect((await rig.stateMap())?.metadata.resourceVersion).toBe(version);
    await annotate(rig, '2020-01-01T00:00:00Z');
    expect(await rig.sweeper().run(signal)).toEqual({ blocked: true });

    await annotate(rig, token);
    expect(await rig.sweeper().run(signal)).toEqual({ blocked: false });
    expect(await rig.keys()).toEqual(objectsOf(rig, keep));
    expect((await rig.stateMap())?.data ?? {}).toEqual({});
  });

  test('waits for a person when there is no Skill at all, and goes on by itself when they are back', async () => {
    const rig = await rigFor();
    const built = promptOnly('only');
    await put(rig, built);
    await rig.sweeper().run(signal);
    expect(await rig.sweeper().run(signal)).toEqual({ blocked: true });
    expect(JSON.parse((await rig.stateMap())?.data.SweepBlocked).message).toContain('no Skills at all');
    expect(await rig.keys()).toEqual(merged(objectsOf(rig, built), markOf(rig, built)));
    await rig.skill('back', serves(built));
    expect(await rig.sweeper().run(signal)).toEqual({ blocked: false });
    expect(await rig.keys()).toEqual(objectsOf(rig, built));
    expect((await rig.stateMap())?.data ?? {}).toEqual({});
  });

  test('says nothing in an installation without Skills and packages', async () => {
    const rig = await rigFor();
    expect(await rig.sweeper().run(signal)).toEqual({ blocked: false });
    expect([await rig.stateMap(), await rig.keys()]).toEqual([undefined, []]);
  });
});

test('image records are left alone where no builds are configured', async () => {
  const rig = await rigFor();
  const owner = { namespace: rig.namespace, skill: 'gone', engine: 'e2b', inputHash: 'a'.repeat(64) };
  const key = imageKey(rig.space, owner);
  await rig.store.put(
    key,
    Buffer.from(JSON.stringify({ digest: `sha256:${'b'.repeat(64)}`, size: 1 })),
    'application/json',
    signal,
  );
  const built = promptOnly('x');
  await put(rig, built);
  await rig.skill('x', serves(built));
  for (let i = 0; i < 3; i++) await rig.sweeper().run(signal);
  expect(await rig.keys()).toEqual(merged(key.slice(rig.space.root.length), objectsOf(rig, built)));
});

test('a worker that comes between the last look at the statuses and the deletion stores what was deleted', async () => {
  const rig = await rigFor();
  const [start, built] = [promptOnly('start'), promptOnly('returns')];
  await put(rig, start, built);
  await rig.skill('pdf', serves(start));
  await rig.sweeper().run(signal);
  const work = async () => {
    await rig.pins.hold(packageThing(rig.namespace, built.digest), 'worker', signal);
    await rig.packages.put(rig.namespace, built, signal);
    await rig.setStatus('pdf', serves(built));
    rig.pins.release('worker');
  };
  let lists = 0;
  let worker: Promise<void> | undefined;
  const api: SweeperDeps['api'] = {
    listPage: async (resource, _all, page, s) => {
      const result = await rig.api.listPage(resource, { namespace: rig.namespace }, page, s);
      // The second list is the last look. The worker has all the time that it would need if nothing held it back.
      if (++lists === 2) {
        worker = work();
        await Promise.race([worker, delay(500)]);
      }
      return result as never;
    },
  };
  await rig.sweeper({ api }).run(signal);
  await worker;
  expect(await rig.counted('package_deleted')).toBe(1);
  const { state } = await rig.packages.verify(rig.namespace, built.digest, built.manifestSHA256, signal);
  expect(state).toBe('intact');
});

test('workers that store and name packages while sweeps run without a grace never name one that is gone', async () => {
  const rig = await rigFor();
  // Each worker switches between two packages: three are unnamed at a time, too few for a sweep to wait for a person.
  const names = ['one', 'two', 'three'];
  const contents = new Map(names.map((name) => [name, [promptOnly(`${name} a`), promptOnly(`${name} b`)]]));
  const start = promptOnly('start');
  for (const name of names) await rig.skill(name, serves(start));
  let sweeps = 0;
  let working = true;
  const sweeping = (async () => {
    for (; working; sweeps++) expect(await rig.sweeper().run(signal)).toEqual({ blocked: false });
  })();
  const work = async (name: string, seed: number) => {
    for (let round = 0; round < 20; round++) {
      const built = contents.get(name)?.[round % 2] as BuiltPackage;
      await rig.pins.hold(packageThing(rig.namespace, built.digest), name, signal);
      await rig.packages.put(rig.namespace, built, signal);
      await rig.setStatus(name, serves(built));
      rig.pins.release(name);
      // Come back before, while and after the other package is deleted.
      const until = sweeps + ((round + seed) % 4);
      await eventually(() => sweeps >= until, { what: 'some sweeps', intervalMs: 1 });
      const { state } = await rig.packages.verify(rig.namespace, built.digest, built.manifestSHA256, signal);
      expect(state, `${name} in round ${round}`).toBe('intact');
    }
  };
  try {
    await Promise.all(names.map(work));
  } finally {
    working = false;
    await sweeping;
  }
  // The race took place.
  expect(await rig.counted('package_deleted')).toBeGreaterThan(10);
});
