import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { matching } from '../../../src/cli/cluster/objects.ts';
import { listing, skillTable, sourceTable } from '../../../src/cli/cluster/rows.ts';
import { age, json, painter, table } from '../../../src/cli/terminal.ts';
import { NOW, SKILLS, SOURCES } from './objects.ts';

const plain = { paint: painter(false), now: NOW, withNamespace: false };

test('the table of sources', () => {
  expect(`\n${sourceTable(Object.values(SOURCES), plain).join('\n')}\n`).toMatchInlineSnapshot(`
    "
    SOURCE   TYPE   REVISION            READY   AGE   STATE       REASON           MESSAGE
    team     git    main@0123456789ab   8/9     5m    Ready       Succeeded        9 Skills applied
    down     git    -                   -       5m    Waiting     GitUnreachable   no connection\\u{1b}[2Jto git.example.com; retry now: kubectl …
    paused   git    -                   -       5m    Suspended   -                spec.suspend is true
    "
  `);
});

test('the table of Skills has every state', () => {
  expect(`\n${skillTable(Object.values(SKILLS), plain).join('\n')}\n`).toMatchInlineSnapshot(`
    "
    SKILL               RUNTIME       SERVED         TEMPLATE     AGE   STATE       REASON               MESSAGE
    team.docs.pdf       prompt-only   aaaaaaaaaaaa   -            5m    Ready       Succeeded            version aaaaaaaaaaaa is served
    team.data.report    e2b::python   aaaaaaaaaaaa   e2b-python   5m    Ready       Succeeded            version aaaaaaaaaaaa is served
    team.docs.odt       prompt-only   aaaaaaaaaaaa   -            5m    Invalid     -                    SKILL.md:2:7: name is "odts"; version aaaaaaaaaaaa stays served
    team.media.ocr      e2b           -              -            5m    Building    Progressing          version aaaaaaaaaaaa is being built
    team.media.thumbs   e2b           -              -            5m    Failed      BuildCommandFailed   RUN pip install nothing failed with 1
    team.media.audio    e2b           -              -            5m    Waiting     EngineUnavailable    engine unavailable: E2B did not answer
    team.docs.csv       -             -              -            5m    Waiting     StoreUnavailable     no connection to minio:9000
    team.docs.old       -             -              -            5m    Suspended   -                    spec.suspend is true; set it to false to start
    team.docs.new       -             -              -            5m    Pending     -                    the operator has not looked at it yet
    team.docs.gone      -             aaaaaaaaaaaa   -            5m    Failed      TreeGone             commit is gone
    team.docs.held      prompt-only   -              -            5m    Failed      NameConflict         Skill other.docs.pdf has the name
    team.docs.leaves    -             aaaaaaaaaaaa   -            5m    Deleting    -                    deleted at 2026-03-01T11:59:00Z, not gone yet
    "
  `);
});

test('on a narrow terminal the last column is cut, with all namespaces there is one more in front', () => {
  const lines = skillTable([SKILLS.invalid], { ...plain, width: 120, withNamespace: true });
  expect(`\n${lines.join('\n')}\n`).toMatchInlineSnapshot(`
    "
    NAMESPACE   SKILL           RUNTIME       SERVED         TEMPLATE   AGE   STATE     REASON   MESSAGE
    default     team.docs.odt   prompt-only   aaaaaaaaaaaa   -          5m    Invalid   -        SKILL.md:2:7: name is "odt…
    "
  `);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120);
});

test('colours do not move a column', () => {
  const coloured = skillTable(Object.values(SKILLS), { ...plain, paint: painter(true) });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the colours are what this is about.
  const bare = coloured.map((line) => line.replaceAll(/\u001b\[\d+m/g, ''));
  expect(bare).toEqual(skillTable(Object.values(SKILLS), plain));
  expect(coloured.join('')).toContain('\u001b[31mInvalid\u001b[0m');
});

test('hostile text cannot reach a terminal in any format, and JSON and YAML keep the value', async () => {
  const hostile = {
    ...SOURCES.unreachable,
    metadata: { ...SOURCES.unreachable.metadata, annotations: { a: '\u202e\u{e0041}\u009b2J\nb' } },
  };
  const texts = [
    sourceTable([hostile], plain).join(''),
    await listing([hostile], [], 'json'),
    await listing([hostile], [], 'yaml'),
  ];
  for (const text of texts) expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  const [fromJson, fromYaml] = [JSON.parse(texts[1] ?? ''), parse(texts[2] ?? '')];
  expect(fromYaml).toEqual(fromJson);
  expect(fromJson.items[0].metadata.annotations.a).toBe('\u202e\u{e0041}\u009b2J\nb');
  expect(fromJson).toMatchObject({
    kind: 'List',
    items: [{ apiVersion: 'skills.tfrobot.io/v1alpha1', kind: 'MarketplaceSource' }],
  });
});

test('managedFields are left out', async () => {
  const object = { ...SKILLS.ready, metadata: { ...SKILLS.ready.metadata, managedFields: [{ manager: 'x' }] } };
  expect(await listing([], [object], 'json')).not.toContain('managedFields');
});

test.each([
  [0, '0s'],
  [-5, '0s'],
  [119_000, '119s'],
  [120_000, '2m'],
  [3_600_000 * 3 + 60_000 * 20, '3h20m'],
  [3_600_000 * 4, '4h'],
  [3_600_000 * 30, '30h'],
  [86_400_000 * 5, '5d'],
])('%d ms is %s', (ms, text) => {
  expect(age(ms)).toBe(text);
});

test('a table of wide characters stays aligned by characters, not by code units', () => {
  expect(
    table(
      ['A', 'B'],
      [
        [{ text: '😀' }, { text: 'x' }],
        [{ text: 'ab' }, { text: 'y' }],
      ],
      painter(false),
    ),
  ).toEqual(['A    B', '😀    x', 'ab   y']);
});

test('JSON on one line has no line end inside', () => {
  expect(json({ a: '\n\u001b' })).toBe('{"a":"\\n\\u001b"}');
});

test.each([
  ['team.docs.pdf', ['team.docs.pdf']],
  ['docs/odt', ['team.docs.odt']],
  ['odt', ['team.docs.odt']],
  ['docs/report', ['team.data.report']],
  ['none', []],
])('"%s" means %j', (wanted, names) => {
  expect(matching(Object.values(SKILLS), wanted).map(({ metadata }) => metadata.name)).toEqual(names);
});
