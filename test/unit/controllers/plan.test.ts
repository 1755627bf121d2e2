import { describe, expect, it } from 'vitest';
import { ANNOTATIONS, LABELS } from '../../../src/api/labels.ts';
import type { MarketplaceSource } from '../../../src/api/marketplacesource.ts';
import type { Skill } from '../../../src/api/skill.ts';
import { atOnce } from '../../../src/base/slices.ts';
import {
  isControlledBy,
  liveInventory,
  observedSpecOf,
  planSkills,
} from '../../../src/controllers/marketplacesource/plan.ts';
import { applied, directory, source } from './objects.ts';
import { C1, C2, carriedOut, names, of, plan, removed, serving, standing, written } from './passes.ts';

describe('planSkills', () => {
  it('makes a Skill of every directory with a SKILL.md', () => {
    const { apply, remove, live, blocked } = plan({
      found: [directory('docs/pdf', 't1'), directory('docs/odt', 't2')],
    });
    expect(names(apply)).toEqual(['team.docs.pdf', 'team.docs.odt']);
    expect([remove, live, blocked]).toEqual([[], 2, undefined]);
    expect(apply[0]).toMatchInlineSnapshot(`
      {
        "labels": {
          "app.kubernetes.io/managed-by": "skill-operator",
          "skills.tfrobot.io/plugin": "docs",
          "skills.tfrobot.io/source": "team",
          "skills.tfrobot.io/source-uid": "source-uid",
        },
        "name": "team.docs.pdf",
        "path": "plugins/docs/skills/pdf",
        "spec": {
          "path": "plugins/docs/skills/pdf",
          "plugin": "docs",
          "revision": {
            "commit": "1111111111111111111111111111111111111111",
            "tree": "t1",
          },
          "source": {
            "marketplaceRef": {
              "name": "team",
            },
          },
        },
      }
    `);
  });

  it('does nothing about a directory whose tree stayed, whatever the commit', () => {
    const found = [directory('docs/pdf', 't1')];
    const { apply, remove, live } = plan({ children: standing(found), found, commit: C2 });
    expect([apply, remove, live]).toEqual([[], [], 1]);
  });

  it('moves exactly the Skill whose tree moved', () => {
    const children = standing([directory('docs/pdf', 't1'), directory('docs/odt', 't2')]);
    const { apply } = plan({ children, found: [directory('docs/pdf', 't1'), directory('docs/odt', 't3')], commit: C2 });
    expect(apply.map(({ name, spec }) => [name, spec.revision])).toEqual([
      ['team.docs.odt', { commit: C2, tree: 't3' }],
    ]);
  });

  it('sees another template on the same objects of the cache, which it has looked at before', () => {
    const found = [directory('docs/pdf', 't1')];
    const children = standing(found);
    const applied = (owner: MarketplaceSource) => plan({ owner, children, found }).apply.length;
    const labelled = source({ skillTemplate: { labels: { team: 'a' } } });
    expect([applied(source()), applied(labelled), applied(source()), applied(labelled)]).toEqual([0, 1, 0, 1]);
  });

  it('keeps the Skill of a directory that lost its SKILL.md and makes none of a new one without', () => {
    const children = standing([directory('docs/pdf', 't1')]);
    const found = [directory('docs/pdf', 't9', false), directory('docs/notes', 't8', false)];
    const { apply, remove } = plan({ children, found, commit: C2 });
    expect(apply.map(({ name, spec }) => [name, spec.revision?.tree])).toEqual([['team.docs.pdf', 't9']]);
    expect(remove).toEqual([]);
  });

  it('removes the Skill of a directory that vanished', () => {
    const found = of(4);
    const result = plan({ children: standing(found), found: found.slice(1) });
    expect(removed(result)).toEqual(['team.docs.skill-0']);
    expect(result.live).toBe(3);
  });

  it.each([
    { title: 'three of three', total: 3, gone: 3, blocked: false },
    { title: 'four of four', total: 4, gone: 4, blocked: true },
    { title: 'half of eight', total: 8, gone: 4, blocked: false },
    { title: 'more than half of nine', total: 9, gone: 5, blocked: true },
    { title: 'all of forty', total: 40, gone: 40, blocked: true },
    { title: 'four of four with maxPercent 100', total: 4, gone: 4, blocked: false, prune: { maxPercent: 100 } },
    { title: 'four of a hundred with maxPercent 0', total: 100, gone: 4, blocked: true, prune: { maxPercent: 0 } },
    { title: 'three of a hundred with maxPercent 0', total: 100, gone: 3, blocked: false, prune: { maxPercent: 0 } },
    { title: 'four of four, allowed', total: 4, gone: 4, blocked: false, pruneAllowed: true },
    { title: 'four of four with policy Keep', total: 4, gone: 4, blocked: false, prune: { policy: 'Keep' as const } },
  ])('guards the prune: $title', ({ total, gone, blocked, prune, pruneAllowed = false }) => {
    const owner = source(prune ? { prune } : {});
    const found = of(total);
    const children = standing(found, owner);
    const result = plan({ owner, children, found: found.slice(gone), pruneAllowed });
    const keep = prune && 'policy' in prune;
    expect(result.remove).toHaveLength(blocked || keep ? 0 : gone);
    expect(result.live).toBe(blocked || keep ? total : total - gone);
    expect(result.blocked).toEqual(
      blocked
        ? {
            names: found
              .slice(0, gone)
              .map(({ path }) => path)
              .sort()
              .slice(0, 10),
            vanished: gone,
            total,
          }
        : undefined,
    );
  });

  it.each([[[]], [['shard']]])('keeps a block that new Skills thin out, with the labels %j followed', (followed) => {
    const owner = source();
    const children = standing(of(5));
    const found = [...of(1), ...['a', 'b', 'c'].map((name) => directory(`office/${name}`, 't'))];
    const first = plan({ owner, children, found, followed });
    const left = carriedOut(owner, children, first);
    expect([first.blocked?.vanished, left]).toEqual([4, expect.objectContaining({ length: 8 })]);
    const again = plan({ owner: written(owner, first, followed), children: left, found, followed });
    expect([again.blocked?.vanished, again.remove]).toEqual([4, []]);
  });

  it('goes on with all other Skills while the prune is blocked', () => {
    const found = of(6);
    const next = [directory('docs/skill-5', 'moved'), directory('docs/new', 't')];
    const result = plan({ children: standing(found), found: next, commit: C2 });
    expect(result.blocked?.vanished).toBe(5);
    expect(names(result.apply)).toEqual(['team.docs.skill-5', 'team.docs.new']);
    expect(result.live).toBe(7);
  });

  it('counts no Skill that is being deleted already', () => {
    const children = standing(of(4)).map((child) => ({
      ...child,
      metadata: { ...child.metadata, deletionTimestamp: '2026-01-02T00:00:00Z' },
    }));
    const result = plan({ children, found: of(4) });
    expect([removed(result), result.apply.length, result.blocked]).toEqual([[], 4, undefined]);
  });

  describe('a skill that moves to another plugin', () => {
    const before = [directory('docs/pdf', 't1'), directory('docs/odt', 't2')];
    const found = [directory('office/pdf', 't1'), directory('docs/odt', 't2')];

    it('hands its name over and stays until the new one serves', () => {
      const children = standing(before).map(serving);
      const result = plan({ children, found, commit: C2 });
      expect(result.remove).toEqual([]);
      expect(result.apply.map(({ name, handover }) => [name, handover])).toEqual([
        ['team.office.pdf', undefined],
        ['team.docs.pdf', 'team.office.pdf'],
      ]);
      const left = carriedOut(source(), children, result);
      expect(left.find(({ metadata }) => metadata.name === 'team.docs.pdf')?.metadata.annotations).toEqual({
        [ANNOTATIONS.handover]: 'team.office.pdf',
      });
    });

    it('goes once the new one serves, without asking the guard', () => {
      const children = carriedOut(
        source(),
        standing(before).map(serving),
        plan({ children: standing(before).map(serving), found }),
      );
      const ready = children.map((child) => (child.metadata.name === 'team.office.pdf' ? serving(child) : child));
      const result = plan({ children: ready, found });
      expect([removed(result), result.apply]).toEqual([['team.docs.pdf'], []]);
    });

    it('goes at once when it serves nothing', () => {
      expect(removed(plan({ children: standing(before), found }))).toEqual(['team.docs.pdf']);
    });

    it('is not counted by the guard', () => {
      const many = of(8);
      const children = standing(many).map(serving);
      const result = plan({ children, found: of(8, 'office') });
      expect([result.blocked, result.remove, result.live]).toEqual([undefined, [], 16]);
    });

    it('loses the mark when its directory returns', () => {
      const owner = source();
      const moved = carriedOut(
        owner,
        standing(before).map(serving),
        plan({ children: standing(before).map(serving), found }),
      );
      const result = plan({ children: moved, found: before });
      expect(result.apply.map(({ name, handover }) => [name, handover])).toContainEqual(['team.docs.pdf', undefined]);
      expect(removed(result)).toEqual(['team.office.pdf']);
    });

    it('stays with the heir that it named when two directories of the name exist', () => {
      const children = standing(before).map(serving);
      const two = [...found, directory('aaa/pdf', 't1')];
      const first = carriedOut(source(), children, plan({ children, found }));
      const { apply } = plan({ children: first, found: two });
      expect(names(apply)).toEqual(['team.aaa.pdf']);
    });
  });

  describe('what the source does not own', () => {
    const found = [directory('docs/pdf', 't1')];
    const change = (edit: (child: Skill) => Skill) => standing(found).map((child) => edit(structuredClone(child)));

    it.each<[string, (child: Skill) => Skill]>([
      ['suspend', (child) => ({ ...child, spec: { ...child.spec, suspend: true } })],
      [
        'a label',
        ({ metadata, ...rest }) => ({ ...rest, metadata: { ...metadata, labels: { ...metadata.labels, team: 'x' } } }),
      ],
      ['deletionPolicy', (child) => ({ ...child, spec: { ...child.spec, deletionPolicy: 'Orphan' } })],
      ['versionHistoryLimit', (child) => ({ ...child, spec: { ...child.spec, versionHistoryLimit: 3 } })],
      [
        'an annotation',
        ({ metadata, ...rest }) => ({ ...rest, metadata: { ...metadata, annotations: { note: 'x' } } }),
      ],
    ])('is left to the person who set it, and read as no drift: %s', (_, edit) => {
      const children = change(edit);
      const result = plan({ children, found });
      expect(result.apply).toEqual([]);
      expect(result.inventory).toBe(atOnce(liveInventory(source(), children)));
    });

    it.each<[string, (child: Skill) => Skill]>([
      ['the path', (child) => ({ ...child, spec: { ...child.spec, path: 'plugins/docs/skills/other' } })],
      ['the tree', (child) => ({ ...child, spec: { ...child.spec, revision: { commit: C1, tree: 'other' } } })],
      ['the plugin', (child) => ({ ...child, spec: { ...child.spec, plugin: 'other' } })],
      [
        'an own label',
        ({ metadata, ...rest }) => ({
          ...rest,
          metadata: { ...metadata, labels: { ...metadata.labels, [LABELS.plugin]: 'x' } },
        }),
      ],
      ['a lost label', ({ metadata, ...rest }) => ({ ...rest, metadata: { ...metadata, labels: {} } })],
    ])('but what it owns is put right: %s', (_, edit) => {
      const children = change(edit);
      expect(names(plan({ children, found }).apply)).toEqual(['team.docs.pdf']);
    });
  });

  describe('skillTemplate', () => {
    const found = [directory('docs/pdf', 't1')];
    const full = source({
      skillTemplate: { labels: { team: 'docs' }, deletionPolicy: 'Orphan', versionHistoryLimit: 2 },
    });

    it('is copied to every Skill', () => {
      const [child] = standing(found, full);
      expect(child?.metadata.labels).toMatchObject({ team: 'docs' });
      expect(child?.spec).toMatchObject({ deletionPolicy: 'Orphan', versionHistoryLimit: 2 });
    });

    it('cannot overrule the labels of the operator', () => {
      const [child] = standing(found, source({ skillTemplate: { labels: { [LABELS.source]: 'other' } } }));
      expect(child?.metadata.labels?.[LABELS.source]).toBe('team');
    });

    it.each([
      ['a label', { deletionPolicy: 'Orphan', versionHistoryLimit: 2 } as const],
      ['deletionPolicy', { labels: { team: 'docs' }, versionHistoryLimit: 2 }],
      ['versionHistoryLimit', { labels: { team: 'docs' }, deletionPolicy: 'Orphan' } as const],
    ])('takes %s back from every Skill when it is taken out', (_, skillTemplate) => {
      const before = source(full.spec, { status: { observedSpec: observedSpecOf(full) } });
      const now = { ...before, spec: source({ skillTemplate }).spec };
      const children = standing(found, full);
      expect(names(plan({ owner: now, children, found }).apply)).toEqual(['team.docs.pdf']);
    });
  });
});

describe('a source of a shard', () => {
  const found = [directory('docs/pdf', 't1')];
  const inShard = (labels: Record<string, string>) => {
    const one = source();
    return { ...one, metadata: { ...one.metadata, labels } };
  };
  const planned = (owner: MarketplaceSource, children: Skill[], followed: string[]) =>
    atOnce(planSkills({ source: owner, children, found, commit: '1'.repeat(40), pruneAllowed: false, followed }));

  it('gives its Skills the labels that the selector asks about, and no others', () => {
    const [first] = planned(inShard({ shard: 'a', note: 'x' }), [], ['shard', 'zone']).apply;
    expect(first?.labels).toMatchObject({ shard: 'a', [LABELS.plugin]: 'docs' });
    expect(Object.keys(first?.labels ?? {})).not.toContain('note');
  });

  it('applies every Skill when such a label moves or goes, and is not taken for unchanged', () => {
    const before = inShard({ shard: 'a' });
    const { apply, inventory } = planned(before, [], ['shard']);
    const children = apply.map((desired) => applied(before, desired, undefined));
    expect(atOnce(liveInventory(before, children, ['shard']))).toBe(inventory);
    for (const labels of [{ shard: 'b' }, {}] as Record<string, string>[]) {
      const after = { ...inShard(labels), status: { observedSpec: observedSpecOf(before, ['shard']) } };
      expect(names(planned(after, children, ['shard']).apply)).toEqual(['team.docs.pdf']);
      expect(observedSpecOf(after, ['shard'])).not.toBe(observedSpecOf(before, ['shard']));
    }
    expect(observedSpecOf(before, [])).toBe(observedSpecOf(source()));
  });
});

describe('observedSpecOf', () => {
  it('moves with what decides a pass and not with how often it runs', () => {
    const base = observedSpecOf(source());
    expect(observedSpecOf(source({ interval: '1h', timeout: '9s', suspend: true }))).toBe(base);
    for (const spec of [{ include: ['docs/*'] }, { ref: { branch: 'x' } }, { prune: { maxPercent: 1 } }]) {
      expect(observedSpecOf(source(spec))).not.toBe(base);
    }
  });
});

describe('isControlledBy', () => {
  const [child] = standing([directory('docs/pdf', 't')]) as [Skill];
  it.each([
    ['its own source', child, source(), true],
    [
      'a source of the same name with another uid',
      child,
      source({}, { metadata: { name: 'team', uid: 'new' } }),
      false,
    ],
    ['no owner', { ...child, metadata: { ...child.metadata, ownerReferences: [] } }, source(), false],
    [
      'an owner that does not control it',
      {
        ...child,
        metadata: {
          ...child.metadata,
          ownerReferences: child.metadata.ownerReferences?.map((ref) => ({ ...ref, controller: false })) ?? [],
        },
      },
      source(),
      false,
    ],
  ])('%s', (_, object, owner, expected) => {
    expect(isControlledBy(object, owner)).toBe(expected);
  });
});
