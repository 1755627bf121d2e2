import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../src/api/labels.ts';
import type { Skill } from '../../../src/api/skill.ts';
import { isSignificant, onSkillChange, onSourceChange } from '../../../src/controllers/changes.ts';
import { BY_NAME, Names, nameKey } from '../../../src/controllers/skill/names.ts';
import { Cache, type Change } from '../../../src/kube/store.ts';
import { type Enqueue, keyOf } from '../../../src/kube/types.ts';
import { condition, served, skill, source } from './objects.ts';

type Added = [queue: string, key: string, priority: boolean | undefined];

function queues() {
  const added: Added[] = [];
  const into = (queue: string): Enqueue => ({ add: (key, options) => added.push([queue, key, options?.priority]) });
  return { added, queues: { source: into('source'), counts: into('counts'), skill: into('skill') } };
}

const owned = (name: string, more: Partial<Skill['metadata']> = {}, status?: Skill['status']) =>
  skill(
    name,
    { source: { marketplaceRef: { name: 'team' } } },
    {
      ownerReferences: [{ apiVersion: 'v1', kind: 'MarketplaceSource', name: 'team', uid: 'u', controller: true }],
      ...more,
    },
    status,
  );

const change = <T extends Skill>(type: Change<T>['type'], object: T, old?: T, initial = false): Change<T> => ({
  type,
  key: keyOf(object),
  object,
  initial,
  ...(old ? { old } : {}),
});

function react(event: Change<Skill>, ...others: Skill[]): Added[] {
  const cache = new Cache<Skill>({ indexes: { [BY_NAME]: (object) => [nameKey(object)] } });
  // The cache has taken the change in before anybody hears of it.
  const there = event.type === 'deleted' ? others : [event.object, ...others];
  for (const [i, object] of there.entries()) {
    cache.put({ ...object, metadata: { ...object.metadata, resourceVersion: String(i + 1) } }, 'stream');
  }
  const { added, queues: into } = queues();
  onSkillChange(event, new Names(cache), into);
  return added;
}

describe('isSignificant', () => {
  const annotations = [ANNOTATIONS.requestedAt];
  const base = skill('a', {}, {}, { observedGeneration: 1 });
  it.each<[string, Partial<Skill['metadata']>, boolean]>([
    ['only the status moved', { resourceVersion: '2' }, false],
    ['a label moved', { labels: { x: 'y' } }, false],
    ['another annotation moved', { annotations: { note: 'x' } }, false],
    ['the spec moved', { generation: 2 }, true],
    ['it is being deleted', { deletionTimestamp: '2026-01-01T00:00:00Z' }, true],
    ['a pass was asked for', { annotations: { [ANNOTATIONS.requestedAt]: 'now' } }, true],
  ])('%s', (_, metadata, expected) => {
    const object = { ...base, metadata: { ...base.metadata, ...metadata } };
    expect(isSignificant(change('updated', object, base), annotations)).toBe(expected);
  });

  it('when a label moved that decides where it belongs', () => {
    const object = { ...base, metadata: { ...base.metadata, labels: { shard: 'b' } } };
    expect(isSignificant(change('updated', object, base), [], ['shard'])).toBe(true);
    expect(isSignificant(change('updated', object, base), [], ['other'])).toBe(false);
  });

  it('always when it is new or gone', () => {
    expect([isSignificant(change('added', base), []), isSignificant(change('deleted', base), [])]).toEqual([
      true,
      true,
    ]);
  });
});

describe('onSourceChange', () => {
  it('asks for a pass, ahead of the mass of the first list', () => {
    const { added, queues: into } = queues();
    onSourceChange({ type: 'added', key: 'ns/team', object: source(), initial: true }, into);
    onSourceChange({ type: 'added', key: 'ns/new', object: source(), initial: false }, into);
    expect(added).toEqual([
      ['source', 'ns/team', false],
      ['counts', 'ns/team', undefined],
      ['source', 'ns/new', true],
      ['counts', 'ns/new', undefined],
    ]);
  });

  it('does nothing about a status', () => {
    const { added, queues: into } = queues();
    const object = source({}, { status: { revision: 'x' } });
    onSourceChange({ type: 'updated', key: 'ns/team', object, old: source(), initial: false }, into);
    expect(added).toEqual([]);
  });
});

describe('onSkillChange', () => {
  const validated = { conditions: [condition('Validated', 'True', 'Valid')] };

  it('never asks for a pass of the source', () => {
    const events = [
      change('added', owned('a')),
      change('updated', owned('a', { generation: 2 }), owned('a')),
      change('deleted', owned('a')),
    ];
    for (const event of events) expect(react(event).map(([queue]) => queue)).toEqual(['skill', 'counts']);
  });

  it('lets what a person or a commit touched go before what a new source brings', () => {
    expect(react(change('added', owned('a')))[0]).toEqual(['skill', 'ns/a', false]);
    expect(react(change('updated', owned('a', { generation: 2 }), owned('a')))[0]).toEqual(['skill', 'ns/a', true]);
  });

  it('has the counts looked at after a status, and no pass of the Skill', () => {
    expect(react(change('updated', owned('a', {}, validated), owned('a', {}, validated)))).toEqual([
      ['counts', 'ns/team', undefined],
    ]);
  });

  it('counts nothing for a Skill that a person applied', () => {
    expect(react(change('added', skill('a')))).toEqual([['skill', 'ns/a', false]]);
  });

  it('wakes the others of the name when it became known whether it can serve', () => {
    const added = react(change('updated', owned('a', {}, validated), owned('a')), owned('b'), owned('c'));
    expect(added).toEqual([
      ['skill', 'ns/b', undefined],
      ['skill', 'ns/c', undefined],
      ['counts', 'ns/team', undefined],
    ]);
  });

  it('wakes them when it is gone', () => {
    const added = react(change('deleted', owned('a', {}, { ...validated, served: served() })), owned('b'));
    expect(added).toContainEqual(['skill', 'ns/b', undefined]);
  });

  it('wakes those of the name that it gave up and those of the name that it wants', () => {
    const [from, to] = ['plugins/docs/skills/pdf', 'plugins/docs/skills/odt'];
    const now = skill('a', { path: to }, { generation: 2 });
    const added = react(
      change('updated', now, skill('a', { path: from })),
      skill('b', { path: from }),
      skill('c', { path: to }),
    );
    expect(added.map(([, key]) => key)).toEqual(['ns/a', 'ns/b', 'ns/c']);
  });

  it('wakes nobody while the first list fills the cache: each of them has its pass anyway', () => {
    expect(react(change('added', owned('a', {}, validated), undefined, true), owned('b'))).toEqual([
      ['skill', 'ns/a', false],
      ['counts', 'ns/team', undefined],
    ]);
  });
});
