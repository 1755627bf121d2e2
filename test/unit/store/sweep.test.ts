import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { imageKey, keySpace, markKey, packageKeys, uploadKey } from '../../../src/store/keys.ts';
import {
  deletionOrder,
  emptyInventory,
  type Inventory,
  isStored,
  isSuspicious,
  packageThing,
  planSweep,
  recordOwner,
  sweepBlock,
  takeStock,
} from '../../../src/store/sweep.ts';

const space = keySpace('skills', 'f3c1');
const digest = (seed: string): string => seed.repeat(64).slice(0, 64);
const [A, B] = [digest('a'), digest('b')];
const RECORD = `images/team/market.docs.pdf-e2b/${A}.json`;

/** The inventory of a bucket with these keys; the number is when, by the store's clock. */
function inventoryOf(keys: Record<string, number>): Inventory {
  const inventory = emptyInventory();
  for (const [key, lastModified] of Object.entries(keys)) takeStock(inventory, space, { key, size: 1, lastModified });
  return inventory;
}

const packageAt = (namespace: string, of: string, at = 0): Record<string, number> => {
  const keys = packageKeys(space, namespace, of);
  return { [keys.tar]: at, [keys.manifest]: at };
};
const markAt = (thing: string, at: number): Record<string, number> => ({ [`${space.root}marks/${thing}`]: at });

describe('an inventory', () => {
  test('holds a package with its private parts as one thing, and records of images', () => {
    const keys = packageKeys(space, 'team', A);
    const image = imageKey(space, { namespace: 'team', skill: 'market.docs.pdf', engine: 'e2b', inputHash: A });
    const inventory = inventoryOf({ [keys.tar]: 1, [keys.manifest]: 2, [keys.privatePart('skillenv')]: 3, [image]: 4 });
    expect([...inventory.things].map(([thing, { kind, lastModified }]) => [thing, kind, lastModified])).toEqual([
      [packageThing('team', A), 'packages', 3],
      [RECORD, 'images', 4],
    ]);
  });

  test('reads the marks that the sweep writes', () => {
    const marks = {
      [markKey(space, 'packages', 'team', A)]: 5,
      [markKey(space, 'images', 'team', RECORD.slice(12))]: 6,
    };
    expect([...inventoryOf(marks).marks]).toEqual([
      [packageThing('team', A), 5],
      [RECORD, 6],
    ]);
  });

  test.each([
    ['an upload', uploadKey(space, 'team', A)],
    ['another installation', packageKeys(keySpace('skills', 'other'), 'team', A).tar],
    ['an installation whose id begins like this one', `skills/v1/f3c1-2/packages/team/${A}/package.tar`],
    ['a file that nobody writes', `${space.root}packages/team/${A}/notes.txt`],
    ['a key that climbs', `${space.root}packages/../${A}/package.tar`],
    ['a mark for an upload', `${space.root}marks/uploads/team/${A}`],
    ['the object that tells the time', `${space.root}marks/clock`],
    ['a record of an unknown engine', `${space.root}images/team/pdf-other/${A}.json`],
  ])('leaves %s out', (_name, key) => {
    const { things, marks } = inventoryOf({ [key]: 1 });
    expect([things.size, marks.size]).toEqual([0, 0]);
  });

  test.each([
    [RECORD, { namespace: 'team', skill: 'market.docs.pdf', engine: 'e2b', inputHash: A }],
    [`images/t/a-e2b-cubesandbox/${A}.json`, { namespace: 't', skill: 'a-e2b', engine: 'cubesandbox', inputHash: A }],
    [packageThing('team', A), undefined],
  ])('knows whose record %s is', (thing, owner) => {
    expect(recordOwner(thing)).toEqual(owner);
  });
});

describe('a sweep', () => {
  const thing = packageThing('team', A);
  const graceMs = 100;
  const NOTHING = { mark: [], lift: [], due: [] };
  test.each<[string, Record<string, number>, boolean, number, Partial<ReturnType<typeof planSweep>>]>([
    ['marks what nobody names', packageAt('team', A), false, 0, { mark: [thing] }],
    ['leaves what somebody names', packageAt('team', A), true, 0, {}],
    ['waits for the grace to pass', { ...packageAt('team', A), ...markAt(thing, 1) }, false, 100, {}],
    ['deletes after the grace', { ...packageAt('team', A), ...markAt(thing, 1) }, false, 101, { due: [thing] }],
    [
      'lifts the mark of what is named again',
      { ...packageAt('team', A), ...markAt(thing, 1) },
      true,
      500,
      { lift: [thing] },
    ],
    ['lifts the mark of a package that is gone', markAt(thing, 1), false, 500, { lift: [thing] }],
    ['still deletes the image of a record that is gone', markAt(RECORD, 1), false, 500, { due: [RECORD] }],
    ['lifts the mark of such a record when its image is named', markAt(RECORD, 1), true, 500, { lift: [RECORD] }],
    ['takes half a package for a thing', { [packageKeys(space, 'team', A).tar]: 0 }, false, 0, { mark: [thing] }],
    [
      'takes a private part that was left behind for a thing',
      { [packageKeys(space, 'team', A).privatePart('skillenv')]: 0 },
      false,
      0,
      { mark: [thing] },
    ],
  ])('%s', (_title, keys, named, storeNow, expected) => {
    const plan = planSweep({ inventory: inventoryOf(keys), isNamed: () => named, storeNow, graceMs });
    expect(plan).toEqual({ ...NOTHING, ...expected });
  });

  test('never touches what is named, never deletes before the grace, and treats every thing once', () => {
    const cell = fc.record({
      stored: fc.boolean(),
      marked: fc.option(fc.nat({ max: 300 })),
      named: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(cell, { maxLength: 12 }), fc.nat({ max: 300 }), (cells, storeNow) => {
        const things = cells.map((_, i) => packageThing('team', i.toString(16).padStart(64, '0')));
        const keys = cells.map(({ stored, marked }, i) => ({
          ...(stored ? packageAt('team', i.toString(16).padStart(64, '0')) : {}),
          ...(marked === null ? {} : markAt(things[i] as string, marked)),
        }));
        const named = new Set(things.filter((_, i) => cells[i]?.named));
        const inventory = inventoryOf(Object.assign({}, ...keys));
        const { mark, lift, due } = planSweep({ inventory, isNamed: (t) => named.has(t), storeNow, graceMs });
        const all = [...mark, ...lift, ...due];
        expect(new Set(all).size).toBe(all.length);
        expect([...mark, ...due].filter((t) => named.has(t))).toEqual([]);
        expect(due.filter((t) => storeNow - (inventory.marks.get(t) ?? storeNow) < graceMs)).toEqual([]);
        // Whatever is named in the end has no mark, whatever is not has one or is due.
        for (const [i, t] of things.entries()) {
          const { stored, marked } = cells[i] as (typeof cells)[number];
          const hasMark = (marked !== null && !lift.includes(t)) || mark.includes(t);
          expect(hasMark).toBe(stored && !named.has(t));
        }
      }),
    );
  });

  test('deletes the manifest first, and all that a package may have', () => {
    expect(
      deletionOrder(space, packageThing('team', A)).map((key) => key.replace(A, '<digest>')),
    ).toMatchInlineSnapshot(`
      [
        "skills/v1/f3c1/packages/team/<digest>/manifest.json",
        "skills/v1/f3c1/packages/team/<digest>/package.tar",
        "skills/v1/f3c1/private/team/<digest>/skillenv",
        "skills/v1/f3c1/private/team/<digest>/Dockerfile",
      ]
    `);
    expect(deletionOrder(space, RECORD)).toEqual([space.root + RECORD]);
  });
});

describe('too many at once', () => {
  test.each([
    [0, 0, false],
    [3, 3, false],
    [4, 39, true],
    [4, 40, false],
    [11, 100, true],
    [10, 100, false],
    [5, 0, true],
  ])('%i of %i: %s', (count, total, suspicious) => {
    expect(isSuspicious(count, total)).toBe(suspicious);
  });

  const things = (count: number, kind = 'packages') =>
    Array.from({ length: count }, (_, i) => {
      const hash = i.toString(16).padStart(64, '0');
      return kind === 'packages' ? packageThing('team', hash) : `images/team/pdf-e2b/${hash}.json`;
    });
  const bucket = (packages: number, images = 0) =>
    inventoryOf(
      Object.fromEntries([
        ...things(packages).map((thing) => [`${space.root}${thing}/package.tar`, 1] as const),
        ...things(images, 'images').map((thing) => [space.root + thing, 1] as const),
      ]),
    );

  test('nothing is due: no block, even without Skills', () => {
    expect(sweepBlock([], bucket(50), 0)).toBeUndefined();
  });
  test('a few go without a word', () => {
    expect(sweepBlock(things(3), bucket(4), 1)).toBeUndefined();
    expect(sweepBlock([...things(5), ...things(5, 'images')], bucket(50, 50), 9)).toBeUndefined();
  });
  test('what blocks says how much it would be', () => {
    expect([
      sweepBlock(things(1), bucket(1), 0),
      sweepBlock(things(6), bucket(50), 9),
      sweepBlock([...things(3), ...things(4, 'images')], bucket(50, 30), 9),
    ]).toMatchInlineSnapshot(`
      [
        "the cluster has no Skills at all; that would delete 1 of 1 packages",
        "the sweep would delete 6 of 50 packages at once",
        "the sweep would delete 4 of 30 image records at once",
      ]
    `);
  });
});

test.each<[string, string[], boolean, boolean]>([
  ['manifest and tar', ['packages/t/D/manifest.json', 'packages/t/D/package.tar'], false, true],
  ['no tar', ['packages/t/D/manifest.json'], false, false],
  ['no manifest', ['packages/t/D/package.tar', 'private/t/D/Dockerfile'], true, false],
  ['no Dockerfile where an image is built', ['packages/t/D/manifest.json', 'packages/t/D/package.tar'], true, false],
  ['all of it', ['packages/t/D/manifest.json', 'packages/t/D/package.tar', 'private/t/D/Dockerfile'], true, true],
  ['nothing', [], false, false],
])('a package of which the bucket has %s is stored or not', (_title, paths, hasDockerfile, stored) => {
  const inventory = inventoryOf(Object.fromEntries(paths.map((path) => [space.root + path.replace('D', B), 1])));
  expect(isStored(inventory, { namespace: 't', digest: B, hasDockerfile })).toBe(stored);
});
