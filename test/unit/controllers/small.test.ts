import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../src/api/labels.ts';
import type { Compute } from '../../../src/base/compute.ts';
import { retry, stalled, waiting } from '../../../src/base/errors.ts';
import { canonicalJson, hashOf } from '../../../src/controllers/hash.ts';
import { transitions } from '../../../src/controllers/marketplacesource/events.ts';
import { blockedMessage, capProblems } from '../../../src/controllers/marketplacesource/problems.ts';
import { explained } from '../../../src/controllers/retry-now.ts';
import { evaluate } from '../../../src/controllers/skill/evaluate.ts';
import { skillEvents } from '../../../src/controllers/skill/events.ts';
import { configOf, isCurrentConfig } from '../../../src/controllers/skill/settings.ts';
import { sameFields } from '../../../src/controllers/status-writer.ts';
import { KubeError } from '../../../src/kube/errors.ts';
import type { EventInput } from '../../../src/kube/events.ts';
import { RUNTIMES, type SkillTree } from '../../../src/protocol/types.ts';
import { condition, served, skill, source } from './objects.ts';

const line = ({ type, reason, action, note }: EventInput) => `${type} ${reason} ${action}: ${note}`;

describe('canonicalJson', () => {
  it('sorts keys at every depth, keeps the order of lists and leaves undefined out', () => {
    expect(canonicalJson({ b: [2, 1, { d: 1, c: undefined }], a: null })).toBe('{"a":null,"b":[2,1,{"d":1}]}');
    expect(canonicalJson([undefined])).toBe('[null]');
  });

  it('is equal for equal values, whatever the order of their keys, and JSON', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const reversed = Object.fromEntries(Object.entries(value).reverse());
        expect(canonicalJson(reversed)).toBe(canonicalJson(value));
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('has a hash of 32 hex digits that tells values apart', () => {
    expect(hashOf({ a: 1 })).toMatch(/^[0-9a-f]{32}$/);
    expect(hashOf({ a: 1 })).not.toBe(hashOf({ a: '1' }));
  });
});

describe('configOf', () => {
  const settings = { tier1: { 'e2b::python': 'tpl-1', 'e2b::node': 'tpl-2' } };
  const other = { tier1: { ...settings.tier1, 'e2b::python': 'tpl-9' } };

  it.each([...RUNTIMES, undefined])('is current for %s until the setting that it uses moves', (runtime) => {
    const config = configOf(settings, runtime);
    expect(isCurrentConfig(settings, config)).toBe(true);
    expect(isCurrentConfig(other, config)).toBe(runtime !== 'e2b::python');
  });

  it.each([undefined, '', 'x', '@', 'prompt-only', 'prompt-only@', 'unknown@abc', '__proto__@1'])(
    'is not current when %j was observed',
    (observed) => {
      expect(isCurrentConfig(settings, observed)).toBe(false);
    },
  );
});

describe('sameFields', () => {
  const owned = ['a', 'b'];
  it.each<[string, object, object, boolean]>([
    ['equal', { a: 1 }, { a: 1 }, true],
    ['deeply equal', { a: { x: [1] } }, { a: { x: [1] } }, true],
    ['another value', { a: 1 }, { a: 2 }, false],
    ['a field to remove', { a: 1, b: 2 }, { a: 1 }, false],
    ['a field to add', { a: 1 }, { a: 1, b: 2 }, false],
    ['undefined is absent', { a: 1, b: undefined }, { a: 1 }, true],
    ['fields of others do not count', { a: 1, c: 1 }, { a: 1, c: 2 }, true],
  ])('%s', (_, current, wanted, expected) => {
    expect(sameFields(current, wanted, owned)).toBe(expected);
  });
});

describe('explained', () => {
  const object = skill('team.docs.pdf');
  it('ends the message of a Waiting with the command that retries now, and keeps the rest', () => {
    const error = explained(waiting('RefNotFound', 'no branch x', { retryAfterMs: 5 }), 'skill', object);
    expect([error.policy, error.reason, error.retryAfterMs]).toEqual(['Waiting', 'RefNotFound', 5]);
    expect(error.message).toMatchInlineSnapshot(
      `"no branch x; retry now: kubectl -n ns annotate skill team.docs.pdf skills.tfrobot.io/requestedAt="$(date +%s)" --overwrite"`,
    );
    expect(explained(waiting('RefNotFound', 'x'), 'marketplacesource', source()).message).toContain(
      'annotate marketplacesource team ',
    );
  });

  it.each([stalled('Invalid', 'broken'), retry('GitUnreachable', 'down')])(
    'leaves others as they are: $policy',
    (error) => {
      expect(explained(error, 'skill', object)).toBe(error);
    },
  );

  it.each([
    [new KubeError(409, 'Conflict', 'changed'), 'Retry', 'Conflict'],
    [new KubeError(403, 'Forbidden', 'no'), 'Waiting', 'Forbidden'],
    [new TypeError('x is undefined'), 'Retry', 'InternalError'],
    ['a string', 'Retry', 'InternalError'],
  ])('gives everything that is thrown a policy and a reason: %s', (error, policy, reason) => {
    expect(explained(error, 'skill', object)).toMatchObject({ policy, reason });
  });
});

describe('capProblems', () => {
  const problems = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ path: `p${i}`, reason: 'NameUnusable', message: `m${i}` }));

  it.each([0, 1, 20])('lists %i problems as they are', (count) => {
    expect(capProblems(problems(count))).toEqual(problems(count));
  });

  it('lists twenty and says how many more there are', () => {
    const listed = capProblems(problems(25));
    expect(listed).toHaveLength(20);
    expect(listed.at(-1)?.message).toBe('m19 (and 5 more problems that are not listed)');
  });

  it('cuts and redacts what comes from a repository', () => {
    const [listed] = capProblems([
      { path: 'p'.repeat(5_000), reason: 'x', message: `https://u:pw@h/ ${'m'.repeat(5_000)}` },
    ]);
    expect([listed?.path.length, listed?.message.length]).toEqual([512, 512]);
    expect(listed?.message).toContain('https://***@h/');
  });
});

describe('blockedMessage', () => {
  const resolved = { commit: '1'.repeat(40), revision: `main@sha1:${'1'.repeat(40)}`, fetchRef: 'refs/heads/main' };
  it('names ten of the vanished and the command that allows the revision', () => {
    const names = Array.from({ length: 10 }, (_, i) => `plugins/docs/skills/s${i}`);
    const message = blockedMessage(source(), resolved, { names, vanished: 12, total: 15 });
    expect(message).toContain('12 of 15 skills vanished at once in main@sha1:1111');
    expect(message).toContain('plugins/docs/skills/s9 and 2 more; none of them was deleted');
    expect(message).toMatch(
      /allow it: kubectl -n ns annotate marketplacesource team skills\.tfrobot\.io\/allow-prune=1{40} --overwrite$/,
    );
  });
});

describe('transitions of a source', () => {
  const ready = condition('Ready', 'True', 'Succeeded', 'applied');
  const down = condition('Ready', 'False', 'GitUnreachable', 'down');
  const blocked = condition('PruneBlocked', 'True', 'PruneBlocked', 'too many');
  const none = { added: 0, changed: 0, removed: 0 };
  it.each<[string, ReturnType<typeof condition>[], ReturnType<typeof condition>[], typeof none | undefined, string[]]>([
    ['nothing changed', [ready], [ready], none, []],
    [
      'the first pass',
      [],
      [ready],
      { ...none, added: 3 },
      ['Normal Succeeded Apply: applied (3 added, 0 changed, 0 removed)'],
    ],
    ['a first pass without skills', [], [ready], none, []],
    [
      'a commit',
      [ready],
      [ready],
      { added: 0, changed: 1, removed: 2 },
      ['Normal Succeeded Apply: applied (0 added, 1 changed, 2 removed)'],
    ],
    ['a failure', [ready], [down], undefined, ['Warning GitUnreachable Reconcile: down']],
    [
      'the same failure again',
      [down],
      [condition('Ready', 'False', 'GitUnreachable', 'down for longer')],
      undefined,
      [],
    ],
    [
      'another failure',
      [down],
      [condition('Ready', 'False', 'RefNotFound', 'no ref')],
      undefined,
      ['Warning RefNotFound Reconcile: no ref'],
    ],
    ['recovery', [down], [ready], none, ['Normal Succeeded Reconcile: applied']],
    ['a blocked prune', [ready], [ready, blocked], none, ['Warning PruneBlocked Prune: too many']],
    ['a prune that stays blocked', [ready, blocked], [ready, blocked], none, []],
  ])('%s', (_, before, after, changes, expected) => {
    const object = source({}, { status: { conditions: before } });
    expect(transitions(object, after, changes).map(line)).toEqual(expected);
  });
});

describe('skillEvents', () => {
  const ready = condition('Ready', 'True', 'Succeeded');
  const invalid = condition('Ready', 'False', 'Invalid', 'broken');
  const tier1 = (templateID?: string) => ({
    ...served(),
    runtime: 'e2b::python',
    engine: 'e2b',
    ...(templateID ? { templateID } : {}),
  });
  const switched = (from: string | undefined, to: string | undefined) => [
    { type: 'VersionServed' as const, from: tier1(from), to: tier1(to) },
  ];
  it.each<
    [
      string,
      ReturnType<typeof condition>[],
      ReturnType<typeof condition>[],
      Parameters<typeof skillEvents>[2],
      string[],
    ]
  >([
    ['Ready, for the first time or again: the source sums that up', [], [ready], [], []],
    ['a failure', [ready], [invalid], [], ['Warning Invalid Reconcile: broken']],
    ['a first pass that fails', [], [invalid], [], ['Warning Invalid Reconcile: broken']],
    ['the same failure', [invalid], [invalid], [], []],
    ['another reason', [condition('Ready', 'False', 'TreeGone')], [invalid], [], ['Warning Invalid Reconcile: broken']],
    [
      'another template',
      [ready],
      [ready],
      switched('a', 'b'),
      ['Normal Registered Promote: version aaaaaaaaaaaa is served with template b (before: a)'],
    ],
    ['the same template', [ready], [ready], switched('a', 'a'), []],
    ['no template any more', [ready], [ready], switched('a', undefined), []],
    ['the first version', [], [ready], [{ type: 'VersionServed', to: tier1('a') }], []],
  ])('%s', (_, before, after, actions, expected) => {
    expect(skillEvents(skill('x', {}, {}, { conditions: before }), after, actions).map(line)).toEqual(expected);
  });
});

describe('evaluate', () => {
  const { signal } = new AbortController();
  const tree = (files: [string, string][]): SkillTree => ({
    directory: 'pdf',
    path: 'plugins/docs/skills/pdf',
    files: files.map(([path, text]) => ({ path, mode: '100644', size: text.length, content: Buffer.from(text) })),
  });

  /** What the work costs, by which the pool chooses the thread. */
  async function costOf(input: SkillTree): Promise<{ weight: number; items: number }> {
    let seen = { weight: Number.NaN, items: Number.NaN };
    const compute: Compute = {
      run: async (task, _input, cost) => {
        expect(task).toBe('evaluate');
        seen = cost;
        return undefined as never;
      },
    };
    await evaluate(compute, input, signal);
    return seen;
  }

  const head = (length: number) => `---\nname: pdf\ndescription: ${'d'.repeat(length)}`;
  it.each<[string, SkillTree, { weight: number; items: number }]>([
    ['an empty directory', tree([]), { weight: 0, items: 0 }],
    [
      'the sum of its files',
      tree([
        ['SKILL.md', '---\na: b\n---\n'],
        ['x', 'yyyy'],
      ]),
      { weight: 17, items: 2 },
    ],
    [
      'frontmatter above 8 KiB goes to a thread',
      tree([['SKILL.md', `${head(9_000)}\n---\n`]]),
      { weight: Number.POSITIVE_INFINITY, items: 1 },
    ],
    [
      'so does one that is not closed',
      tree([['SKILL.md', `${head(1)}\n${'x'.repeat(9_000)}`]]),
      { weight: Number.POSITIVE_INFINITY, items: 1 },
    ],
    ['a long body does not', tree([['SKILL.md', `---\na: b\n---\n${'x'.repeat(9_000)}`]]), { weight: 9_013, items: 1 }],
  ])('%s', async (_, input, cost) => {
    expect(await costOf(input)).toEqual(cost);
  });

  it('takes a file that was not read for nothing', async () => {
    const input = tree([['SKILL.md', '---\n---\n']]);
    input.files.push({ path: 'large.bin', mode: '100644', size: 9e9 });
    expect(await costOf(input)).toEqual({ weight: 8, items: 2 });
  });
});

describe('annotations', () => {
  it('keep the names that people type', () => {
    expect(ANNOTATIONS).toMatchInlineSnapshot(`
      {
        "allowPrune": "skills.tfrobot.io/allow-prune",
        "handover": "skills.tfrobot.io/handover",
        "hosts": "skills.tfrobot.io/hosts",
        "rebuild": "skills.tfrobot.io/rebuild",
        "requestedAt": "skills.tfrobot.io/requestedAt",
      }
    `);
  });
});
