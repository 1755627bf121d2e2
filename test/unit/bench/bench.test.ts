import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { validateSkill } from '../../../src/protocol/validate.ts';
import { AuditTail, byResource, skillWrites } from '../../bench/audit-tail.ts';
import { SkillMaker } from '../../bench/generate.ts';
import { figuresOf } from '../../bench/procstat.ts';
import { describeProfile } from '../../bench/profile.ts';
import { format, HEADER, type Row, summary, verdict } from '../../bench/rows.ts';
import { percentile, pooled, seeded } from '../../bench/stats.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'skill-operator-bench-test-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

const row = (over: Partial<Row>): Row => ({ scenario: 'cold', measure: 'a figure', value: 1, unit: '', ...over });

describe('rows', () => {
  test.each<[string, Partial<Row>, 'ok' | 'MISS' | undefined]>([
    ['at the target', { value: 2, target: 2 }, 'ok'],
    ['above the target', { value: 2.001, target: 2 }, 'MISS'],
    ['none allowed and none seen', { value: 0, target: 0 }, 'ok'],
    ['none allowed and one seen', { value: 1, target: 0 }, 'MISS'],
    ['no target', { value: 7 }, undefined],
    ['not measured', { value: Number.NaN, target: 5 }, 'MISS'],
  ])('%s', (_, over, expected) => {
    expect(verdict(row(over))).toBe(expected);
  });

  test('a table shows value, target, ratio and verdict', () => {
    const table = [
      HEADER,
      format(row({ measure: 'all Ready after', value: 11.254, unit: 's', target: 15 })),
      format(row({ measure: 'API writes per skill', value: 2.004, target: 2 })),
      format(row({ measure: 'operator CPU', value: 0.25, unit: 's' })),
    ];
    expect(table.join('\n')).toMatchInlineSnapshot(`
      "scenario         | measure                                        |        value |       target |   ratio |
      cold             | all Ready after                                |      11.25 s |       ≤ 15 s |    0.75 |   ok
      cold             | API writes per skill                           |        2.004 |          ≤ 2 |    1.00 | MISS
      cold             | operator CPU                                   |      0.250 s |              |         |"
    `);
  });

  test('the sum counts targets and names what misses', () => {
    const rows = [row({ target: 1 }), row({ measure: 'another', value: 3, target: 2 }), row({})];
    expect(summary(rows)).toBe('2 targets, 1 MISS (cold: another)');
    expect(summary([row({ target: 1 })])).toBe('1 target, 0 MISS');
  });
});

describe('stats', () => {
  test.each<[number[], number, number]>([
    [[3, 1, 2], 0.5, 2],
    [[1], 0.95, 1],
    [Array.from({ length: 20 }, (_, i) => i + 1), 0.95, 19],
    [[], 0.5, Number.NaN],
  ])('percentile of %j at %d is %d', (samples, p, expected) => {
    expect(percentile(samples, p)).toBe(expected);
  });

  test('a seed always gives the same numbers, another seed others', () => {
    const take = (seed: number) => Array.from({ length: 5 }, seeded(seed));
    expect(take(1)).toEqual(take(1));
    expect(take(1)).not.toEqual(take(2));
    expect(Math.max(...Array.from({ length: 1000 }, seeded(3)))).toBeLessThan(1);
  });

  test('a pool does every item once and never more at a time than it may', async () => {
    let running = 0;
    let most = 0;
    const done: number[] = [];
    await pooled([...Array(50).keys()], 4, async (item) => {
      most = Math.max(most, ++running);
      await Promise.resolve();
      done.push(item);
      running--;
    });
    expect(done.sort((a, b) => a - b)).toEqual([...Array(50).keys()]);
    expect(most).toBe(4);
  });

  test('a failure in a pool comes out', async () => {
    const fail = pooled([1, 2, 3], 2, async (item) => {
      if (item === 2) throw new Error('two');
    });
    await expect(fail).rejects.toThrow('two');
  });
});

describe('made-up skills', () => {
  const sizeOf = (files: Record<string, unknown>) =>
    Object.values(files).reduce<number>((sum, file) => sum + (file as string | Buffer).length, 0);

  test('are valid, differ, and are the same for the same seed', () => {
    const [one, two] = [new SkillMaker(5), new SkillMaker(5)];
    const seen = new Set<string>();
    for (let i = 0; i < 20; i++) {
      const made = one.make('demo', i);
      expect(two.make('demo', i)).toEqual(made);
      seen.add(String(made.files[`${made.path}/SKILL.md`]));
      const files = Object.entries(made.files).map(([path, content]) => {
        const bytes = Buffer.from(content as string | Buffer);
        return { path: path.slice(made.path.length + 1), mode: '100644' as const, size: bytes.length, content: bytes };
      });
      expect(validateSkill({ directory: made.skill, path: made.path, files }).violations).toEqual([]);
    }
    expect(seen.size).toBe(20);
  });

  test('have the sizes of public marketplaces', () => {
    const maker = new SkillMaker(7);
    const sizes = Array.from({ length: 1000 }, (_, i) => sizeOf(maker.make('demo', i).files));
    expect(percentile(sizes, 0.5)).toBeGreaterThan(5 * 1024);
    expect(percentile(sizes, 0.5)).toBeLessThan(10 * 1024);
    expect(Math.max(...sizes)).toBeLessThan(600 * 1024);
  });

  test('another revision of a SKILL.md is another content of about the size asked for', () => {
    const maker = new SkillMaker(9);
    expect(maker.skillMd('a', 1, 4096)).not.toBe(maker.skillMd('a', 2, 4096));
    expect(Math.abs(maker.skillMd('a', 1, 4096).length - 4096)).toBeLessThan(200);
  });
});

describe('the audit log', () => {
  const event = (resource: string, name: string, over: object = {}) =>
    `${JSON.stringify({
      stage: 'ResponseComplete',
      stageTimestamp: '2025-06-15T10:00:00.500000Z',
      verb: 'patch',
      user: { username: 'operator' },
      objectRef: { resource, namespace: 'team', name },
      responseStatus: { code: 200 },
      ...over,
    })}\n`;

  test('is read as it grows, in whole lines', () => {
    const file = join(dir, 'audit.log');
    writeFileSync(file, event('skills', 'a'));
    using tail = new AuditTail(file);
    const mark = tail.mark();
    expect(tail.since(0)).toHaveLength(1);
    const line = event('skills', 'b', { objectRef: { resource: 'skills', subresource: 'status', name: 'b' } });
    appendFileSync(file, line.slice(0, 40));
    expect(tail.since(mark)).toEqual([]);
    appendFileSync(file, line.slice(40) + event('skills', 'c', { stage: 'ResponseStarted' }));
    expect(tail.since(mark)).toEqual([
      {
        user: 'operator',
        verb: 'patch',
        resource: 'skills/status',
        namespace: '',
        name: 'b',
        code: 200,
        at: Date.parse('2025-06-15T10:00:00.500Z'),
      },
    ]);
  });

  test('that was cut off is an error, since counts would be wrong', () => {
    const file = join(dir, 'cut.log');
    writeFileSync(file, event('skills', 'a'));
    using tail = new AuditTail(file);
    tail.mark();
    writeFileSync(file, '');
    expect(() => tail.mark()).toThrow('cut off');
  });

  test('tells writes for Skills from those for their source', () => {
    const file = join(dir, 'kinds.log');
    const names = ['market.docs.pdf.0123', 'market.0123', 'other.4567'];
    writeFileSync(
      file,
      [
        event('skills', 'market.docs.pdf'),
        ...names.map((name) => event('events', name)),
        event('marketplacesources', 'market', { objectRef: { resource: 'marketplacesources', subresource: 'status' } }),
      ].join(''),
    );
    using tail = new AuditTail(file);
    const writes = tail.since(0);
    expect(byResource(writes)).toEqual({ skills: 1, events: 3, 'marketplacesources/status': 1 });
    expect(skillWrites(writes, new Set(['market.docs.pdf']))).toBe(2);
  });
});

test('the figures of a process come from the kernel', () => {
  const figures = figuresOf(process.pid);
  expect(figures.cpu).toBeGreaterThan(0);
  expect(figures.childCpu).toBeGreaterThanOrEqual(0);
  expect(figures.rss).toBeGreaterThan(10);
  expect(figures.peakRss).toBeGreaterThanOrEqual(figures.rss);
  expect(() => figuresOf(2 ** 22 + 1)).toThrow('ENOENT');
});

test('a profile is told by self time, without the idle', () => {
  const frame = (functionName: string, url = '') => ({ functionName, url, lineNumber: 9 });
  const nodes = [
    { id: 1, callFrame: frame('(idle)') },
    { id: 2, callFrame: frame('parse', 'file:///srv/main.js') },
    { id: 3, callFrame: frame('', 'node:net') },
  ];
  const profile = { nodes, samples: [1, 2, 3, 2], timeDeltas: [9_000_000, 1_000_000, 1_000_000, 2_000_000] };
  writeFileSync(join(dir, 'CPU.20250615.100000.77.0.001.cpuprofile'), JSON.stringify(profile));
  expect(describeProfile(dir, 77).slice(1)).toEqual([
    '  75.0 %    3000 ms  parse  main.js:10',
    '  25.0 %    1000 ms  (anonymous)  node:net:10',
  ]);
  expect(describeProfile(dir, 78)).toEqual([`no profile of process 78 in ${dir}`]);
});
