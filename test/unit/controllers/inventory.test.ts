import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MarketplaceSource } from '../../../src/api/marketplacesource.ts';
import type { Skill } from '../../../src/api/skill.ts';
import { atOnce } from '../../../src/base/slices.ts';
import { liveInventory } from '../../../src/controllers/marketplacesource/plan.ts';
import { directory, source } from './objects.ts';
import { C2, carriedOut, of, plan, removed, serving, standing, written } from './passes.ts';

describe('the inventory', () => {
  type Entry = { plugin: string; skill: string; tree: string; has: boolean };
  const plugin = fc.constantFrom<string[]>('docs', 'office', 'media');
  const listing = fc.uniqueArray(
    fc.record({
      plugin,
      skill: fc.constantFrom<string[]>('a', 'b', 'c', 'd', 'e'),
      tree: fc.constantFrom<string[]>('t1', 't2'),
      has: fc.boolean(),
    }),
    { selector: ({ plugin: p, skill: s }) => `${p}/${s}`, maxLength: 12 },
  );
  const toFound = (list: Entry[]) =>
    list.map(({ plugin: p, skill: s, tree, has }) => directory(`${p}/${s}`, tree, has));
  const policy = fc.constantFrom<MarketplaceSource['spec']>(
    source().spec,
    source({ prune: { policy: 'Keep' } }).spec,
    source({ prune: { maxPercent: 0 } }).spec,
    source({ skillTemplate: { labels: { team: 'x' }, versionHistoryLimit: 0 } }).spec,
  );

  const entry = (p: string, skill: string, has = true): Entry => ({ plugin: p, skill, tree: 't1', has });
  const of5 = ['a', 'b', 'c'].map((skill) => entry('docs', skill)).concat(entry('media', 'a'), entry('media', 'd'));
  const thinned = [entry('media', 'd', false), entry('docs', 'd'), entry('docs', 'e'), entry('office', 'd')];

  it('of the plan is the one of the Skills that it leaves, and a second pass changes nothing', () => {
    fc.assert(
      fc.property(
        listing,
        listing,
        policy,
        fc.array(fc.nat(11), { maxLength: 6 }),
        fc.boolean(),
        (one, two, spec, who, pruneAllowed) => {
          const owner = source(spec);
          const first = standing(toFound(one), owner).map((child, i) => (who.includes(i) ? serving(child) : child));
          const result = plan({ owner, children: first, found: toFound(two), commit: C2, pruneAllowed });
          const left = carriedOut(owner, first, result);
          expect(atOnce(liveInventory(owner, left))).toBe(result.inventory);
          expect(left).toHaveLength(result.live);
          const after = written(owner, result);
          const again = plan({ owner: after, children: left, found: toFound(two), commit: C2, pruneAllowed });
          expect([again.apply, again.inventory]).toEqual([[], result.inventory]);
          if (result.blocked) expect(again.remove).toEqual([]);
        },
      ),
      {
        numRuns: 300,
        // Four of five vanish and three new ones come: half of all Skills by the second pass.
        examples: [[of5, thinned, source().spec, [], false]],
      },
    );
  });

  it('and the plan do not depend on the order of children and directories', () => {
    fc.assert(
      fc.property(listing, listing, fc.infiniteStream(fc.nat()), (one, two, stream) => {
        const shuffled = <T>(list: T[]): T[] =>
          list
            .map((item) => ({ item, rank: stream.next().value as number }))
            .sort((a, b) => a.rank - b.rank)
            .map(({ item }) => item);
        const children = standing(toFound(one)).map(serving);
        const [a, b] = [
          plan({ children, found: toFound(two), commit: C2 }),
          plan({ children: shuffled(children), found: shuffled(toFound(two)), commit: C2 }),
        ];
        const sorted = <T extends { name: string }>(list: T[]) => [...list].sort((x, y) => (x.name < y.name ? -1 : 1));
        expect(sorted(a.apply)).toEqual(sorted(b.apply));
        expect(removed(a).sort()).toEqual(removed(b).sort());
        expect([a.inventory, a.blocked]).toEqual([b.inventory, b.blocked]);
      }),
      { numRuns: 200 },
    );
  });

  it('leaves out Skills that are being deleted', () => {
    const children = standing(of(2));
    const [first, second] = children as [Skill, Skill];
    const dying = { ...second, metadata: { ...second.metadata, deletionTimestamp: '2026-01-02T00:00:00Z' } };
    expect(atOnce(liveInventory(source(), [first, dying]))).toBe(atOnce(liveInventory(source(), [first])));
  });
});
