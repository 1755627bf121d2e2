import { expect, test } from 'vitest';
import { painter } from '../../../src/cli/terminal.ts';
import { externalOf, isHeld, nextCommands, remainingOf } from '../../../src/cli/uninstall/plan.ts';
import { planText, remainingText, resultText } from '../../../src/cli/uninstall/text.ts';
import { SKILLS, SOURCES } from './objects.ts';

const paint = painter(false);
const next = nextCommands({ release: 'skills', namespace: 'ops', more: false });
const inventory = { sources: Object.values(SOURCES), skills: Object.values(SKILLS) };
const options = { orphan: false, next, paint, again: 'skillctl uninstall --yes' };
const alive = { lease: 'skill-operator', alive: true, holder: 'pod-1', ageMs: 100 } as const;
const held = {
  ...SKILLS.engineDown,
  metadata: {
    ...SKILLS.engineDown.metadata,
    deletionTimestamp: 'now',
    finalizers: ['skills.tfrobot.io/external-objects', 'example.com/x'],
  },
};

test('only images and templates that were made for a Skill count as outside', () => {
  expect(externalOf(inventory.skills)).toEqual([
    { namespace: 'default', skill: 'team.media.audio', engine: 'e2b', image: expect.stringMatching(/^registry/) },
  ]);
});

test('the plan changes nothing and says what would go', () => {
  expect(`\n${planText(inventory, alive, options)}`).toMatchInlineSnapshot(`
    "
    This would delete:
      default: 3 sources, 12 Skills
    The operator works (pod-1).
    The operator removes these from registry and engines:
      default/team.media.audio: image registry.example.com/skills/x@sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc

    Then these commands would remove the rest:
      helm uninstall skills --namespace ops
      kubectl delete crd marketplacesources.skills.tfrobot.io skills.skills.tfrobot.io
      kubectl delete namespace ops

    Nothing was changed. To do it: skillctl uninstall --yes
    "
  `);
  expect(
    `\n${planText(inventory, { lease: 'skill-operator', alive: false, holder: 'pod-1' }, { ...options, orphan: true })}`,
  ).toMatchInlineSnapshot(`
    "
    This would delete:
      default: 3 sources, 12 Skills
    No operator works: nobody is there to remove images and templates. Start it first, or use --force later.
    These stay, because of --orphan:
      default/team.media.audio: image registry.example.com/skills/x@sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc

    Then these commands would remove the rest:
      helm uninstall skills --namespace ops
      kubectl delete crd marketplacesources.skills.tfrobot.io skills.skills.tfrobot.io
      kubectl delete namespace ops

    Nothing was changed. To do it: skillctl uninstall --yes
    "
  `);
  expect(`\n${planText({ sources: [], skills: [] }, undefined, options)}`).toMatchInlineSnapshot(`
    "
    There is no MarketplaceSource and no Skill.

    What is left to do:
      helm uninstall skills --namespace ops
      kubectl delete crd marketplacesources.skills.tfrobot.io skills.skills.tfrobot.io
      kubectl delete namespace ops
    "
  `);
});

test('what did not go is listed with what holds it and what stays outside', () => {
  expect(isHeld(held)).toBe(true);
  expect(isHeld(SKILLS.deleting)).toBe(false);
  const text = remainingText(remainingOf([held]), externalOf([held]), 'no operator works that could let them go');
  expect(`\n${text}`).toMatchInlineSnapshot(`
    "
    1 Skill did not go: no operator works that could let them go
      default/team.media.audio (held by skills.tfrobot.io/external-objects, example.com/x): engine unavailable: E2B did not answer
    Outside the cluster there are still:
      default/team.media.audio: image registry.example.com/skills/x@sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
    "
  `);
  const many = remainingText(remainingOf(Array(50).fill(held)), [], 'x');
  expect(many.split('\n').at(-2)).toBe('  and 30 more (-o json lists all)');
});

test('the result names the next commands, or what was left behind', () => {
  const result = {
    dryRun: false,
    sources: 2,
    skills: 3,
    external: [],
    orphaned: false,
    remaining: [],
    leaked: [],
    ledger: 0,
    next,
  };
  expect(`\n${resultText(result, paint)}`).toMatchInlineSnapshot(`
    "
    Deleted 2 sources and 3 Skills.
    Now:
      helm uninstall skills --namespace ops
      kubectl delete crd marketplacesources.skills.tfrobot.io skills.skills.tfrobot.io
      kubectl delete namespace ops
    Packages stay in the bucket until you delete its prefix.
    "
  `);
  const [external] = [externalOf([held])];
  const forced = { ...result, external, orphaned: true, leaked: external, ledger: 1 };
  expect(`\n${resultText(forced, paint)}`).toMatchInlineSnapshot(`
    "
    Deleted 2 sources and 3 Skills.
    1 version left images and templates behind, because of --orphan.
    Left behind; remove them by hand:
      default/team.media.audio: image registry.example.com/skills/x@sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
    1 version of deleted Skills could not be removed yet. The operator keeps trying: leave it running until skillctl doctor says that the ledger is empty.
    Now:
      helm uninstall skills --namespace ops
      kubectl delete crd marketplacesources.skills.tfrobot.io skills.skills.tfrobot.io
      kubectl delete namespace ops
    Packages stay in the bucket until you delete its prefix.
    "
  `);
  expect(resultText({ ...result, remaining: remainingOf([held]) }, paint)).not.toContain('helm');
  expect(nextCommands({ release: 'a', namespace: 'b', more: true }).join()).not.toContain('helm');
});
