import { expect, test } from 'vitest';
import { traceText } from '../../../src/cli/cluster/trace.ts';
import { traceMissing, traceSkill } from '../../../src/cli/cluster/tracing.ts';
import { painter } from '../../../src/cli/terminal.ts';
import { SKILLS, SOURCES } from './objects.ts';

const paint = painter(false);
const shown = (name: keyof typeof SKILLS, source: keyof typeof SOURCES = 'ready') =>
  `\n${traceText(traceSkill(SKILLS[name], SOURCES[source]), paint)}`;
const missing = (wanted: string, ...sources: (keyof typeof SOURCES)[]) => {
  const trace = traceMissing(
    wanted,
    'default',
    sources.map((name) => SOURCES[name]),
  );
  return trace && `\n${traceText(trace, paint)}`;
};

test('a Skill that is Ready', () => {
  expect(shown('ready')).toMatchInlineSnapshot(`
    "
    team.docs.pdf in default
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      ✓ commit    0123456789ab, last change of plugins/docs/skills/pdf, source at main@0123456789ab
      ✓ version   aaaaaaaaaaaa, prompt-only, 2 files, 1234 bytes
      ✓ build     not needed
      ✓ template  not needed: prompt-only
      ✓ served    aaaaaaaaaaaa of commit 0123456789ab

    Ready
    "
  `);
  expect(shown('tier1')).toMatchInlineSnapshot(`
    "
    team.data.report in default
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      ✓ commit    0123456789ab, last change of plugins/docs/skills/report, source at main@0123456789ab
      ✓ version   aaaaaaaaaaaa, e2b::python, 2 files, 1234 bytes
      ✓ build     not needed
      ✓ template  e2b-python
      ✓ served    aaaaaaaaaaaa of commit 0123456789ab

    Ready
    "
  `);
});
test('content that breaks rules: every rule with its place, and no command that would not help', () => {
  expect(shown('invalid')).toMatchInlineSnapshot(`
    "
    team.docs.odt in default
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      ✓ commit    0123456789ab, last change of plugins/docs/skills/odt, source at main@0123456789ab
      ✗ version   not made
      ✓ build     not needed
      · template  not needed: prompt-only
      · served    aaaaaaaaaaaa of commit 0123456789ab, the last good version

    Stopped at version: Invalid
      SKILL.md:2:7 NameMismatchesDirectory  name is "odts"
        fix: name: odt
      . PathInvalid  hostile \\u{1b}[31m text
    Next:
      correct it and push a commit
      skillctl validate PATH shows the same before a push
    "
  `);
});
test('a build under way', () => {
  expect(shown('building')).toMatchInlineSnapshot(`
    "
    team.media.ocr in default
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      ✓ commit    0123456789ab, last change of plugins/docs/skills/ocr, source at main@0123456789ab
      ✓ version   aaaaaaaaaaaa, e2b, 2 files, 1234 bytes
      … build     Building, attempt 1, Job sb-0011223344556677-1
      · template  none yet
      · served    none

    On its way
    "
  `);
});
test('a build that failed leads to its log', () => {
  expect(shown('failed')).toMatchInlineSnapshot(`
    "
    team.media.thumbs in default
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      ✓ commit    0123456789ab, last change of plugins/docs/skills/thumbs, source at main@0123456789ab
      ✓ version   aaaaaaaaaaaa, e2b, 2 files, 1234 bytes
      ✗ build     Failed, attempt 1
      · template  none yet
      · served    none

    Stopped at build: BuildCommandFailed
      RUN pip install nothing failed with 1
    Next:
      skillctl logs --build team.media.thumbs -n default
      correct it and push a commit
    "
  `);
});
test('an engine that is down', () => {
  expect(shown('engineDown')).toMatchInlineSnapshot(`
    "
    team.media.audio in default
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      ✓ commit    0123456789ab, last change of plugins/docs/skills/audio, source at main@0123456789ab
      ✓ version   aaaaaaaaaaaa, e2b, 2 files, 1234 bytes
      ✓ build     registry.example.com/skills/x@sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
      ✗ template  none yet
      · served    none

    Stopped at template: EngineUnavailable
      engine unavailable: E2B did not answer
    Next:
      skillctl reconcile skill team.media.audio --wait -n default
    "
  `);
});
test('a store that is down', () => {
  expect(shown('storeDown')).toMatchInlineSnapshot(`
    "
    team.docs.csv in default
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      ✓ commit    0123456789ab, last change of plugins/docs/skills/csv, source at main@0123456789ab
      ✗ version   not made
      · build     none yet
      · template  none yet
      · served    none

    Stopped at version: StoreUnavailable
      no connection to minio:9000
    Next:
      skillctl reconcile skill team.docs.csv --wait -n default
    "
  `);
});
test('a source that is down stops at the source, whatever was served before', () => {
  expect(shown('ready', 'unreachable')).toMatchInlineSnapshot(`
    "
    team.docs.pdf in default
      ✗ source    MarketplaceSource down, git https://git.example.com/team/skills.git branch release
      ✓ commit    0123456789ab, last change of plugins/docs/skills/pdf
      ✓ version   aaaaaaaaaaaa, prompt-only, 2 files, 1234 bytes
      ✓ build     not needed
      ✓ template  not needed: prompt-only
      ✓ served    aaaaaaaaaaaa of commit 0123456789ab

    Stopped at source: GitUnreachable
      no connection\\u{1b}[2Jto git.example.com; retry now: kubectl …
    Next:
      skillctl reconcile source team --wait -n default
    "
  `);
});
test('suspended, held, gone, deleted, not looked at', () => {
  expect(shown('suspended')).toMatchInlineSnapshot(`
    "
    team.docs.old in default
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      ✓ commit    0123456789ab, last change of plugins/docs/skills/old, source at main@0123456789ab
      · version   none yet
      · build     none yet
      · template  none yet
      · served    none

    Stopped at version: Suspended
      spec.suspend is true; set it to false to start
    Next:
      skillctl resume skill team.docs.old -n default
    "
  `);
  expect(shown('held')).toMatchInlineSnapshot(`
    "
    team.docs.held in default
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      ✓ commit    0123456789ab, last change of plugins/docs/skills/held, source at main@0123456789ab
      ✓ version   aaaaaaaaaaaa, prompt-only, 2 files, 1234 bytes
      ✓ build     not needed
      ✓ template  not needed: prompt-only
      ✗ served    none

    Stopped at served: NameConflict
      Skill other.docs.pdf has the name
    Next:
      rename one of the two: its directory and its name in SKILL.md
    "
  `);
  expect(shown('treeGone')).toMatchInlineSnapshot(`
    "
    team.docs.gone in default
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      ✗ commit    0123456789ab, last change of plugins/docs/skills/gone, source at main@0123456789ab
      ✓ version   aaaaaaaaaaaa, prompt-only, 2 files, 1234 bytes
      ✓ build     not needed
      · template  not needed: prompt-only
      · served    aaaaaaaaaaaa of commit 0123456789ab, the last good version

    Stopped at commit: TreeGone
      commit is gone
    Next:
      skillctl reconcile skill team.docs.gone --wait -n default
    "
  `);
  expect(shown('deleting')).toMatchInlineSnapshot(`
    "
    team.docs.leaves in default
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      ✓ commit    0123456789ab, last change of plugins/docs/skills/leaves, source at main@0123456789ab
      ✓ version   aaaaaaaaaaaa, prompt-only, 2 files, 1234 bytes
      ✓ build     not needed
      · template  not needed: prompt-only
      · served    none

    Stopped at template: Deleting
      deleted at 2026-03-01T11:59:00Z, not gone yet
    Next:
      skillctl doctor tells whether the operator runs, which has to let it go
    "
  `);
  expect(shown('pending')).toMatchInlineSnapshot(`
    "
    team.docs.new in default
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      … commit    0123456789ab, last change of plugins/docs/skills/new, source at main@0123456789ab
      · version   none yet
      · build     none yet
      · template  none yet
      · served    none

    On its way
    "
  `);
});
test('a source that does not exist', () => {
  expect(`\n${traceText(traceSkill(SKILLS.storeDown, undefined), paint)}`).toMatchInlineSnapshot(`
    "
    team.docs.csv in default
      ✗ source    MarketplaceSource team
      ✓ commit    0123456789ab, last change of plugins/docs/skills/csv
      ✗ version   not made
      · build     none yet
      · template  none yet
      · served    none

    Stopped at source: SourceNotFound
      MarketplaceSource team does not exist in namespace default
    Next:
      apply the source, or delete the Skill: kubectl delete skl team.docs.csv -n default
    "
  `);
});
test('a directory that never became a Skill, by each of its names', () => {
  expect(missing('note', 'ready')).toMatchInlineSnapshot(`
    "
    note in default (no Skill object)
      ✓ source    MarketplaceSource team, git https://git.example.com/team/skills.git
      ✗ commit    plugins/docs/skills/note
      · version   none
      · build     none
      · template  none
      · served    none

    Stopped at commit: SkillMdMissing
      plugins/docs/skills/note has no SKILL.md; add one
    Next:
      correct it and push a commit
      skillctl reconcile source team --wait -n default
    "
  `);
  const same = missing('note', 'ready')?.replace('note in', '');
  for (const name of ['docs/note', 'team.docs.note', 'plugins/docs/skills/note'])
    expect(missing(name, 'unreachable', 'ready')?.replace(`${name} in`, '')).toBe(same);
});
test('no trace of the name: the source that is not Ready keeps it back; none is to blame when all are well', () => {
  expect(missing('other', 'ready', 'unreachable')).toMatchInlineSnapshot(`
    "
    other in default (no Skill object)
      ✗ source    MarketplaceSource down, git https://git.example.com/team/skills.git branch release
      · commit    not looked for yet
      · version   none
      · build     none
      · template  none
      · served    none

    Stopped at source: GitUnreachable
      no connection\\u{1b}[2Jto git.example.com; retry now: kubectl …
    Next:
      skillctl reconcile source down --wait -n default
    "
  `);
  expect(missing('team.docs.other', 'ready', 'unreachable')).toBeUndefined();
  expect(missing('other', 'ready')).toBeUndefined();
  expect(missing('other', 'suspended')).toMatchInlineSnapshot(`
    "
    other in default (no Skill object)
      ✗ source    MarketplaceSource paused, git https://git.example.com/team/skills.git
      · commit    not looked for yet
      · version   none
      · build     none
      · template  none
      · served    none

    Stopped at source: Suspended
      spec.suspend is true
    Next:
      skillctl resume source paused -n default
    "
  `);
});
