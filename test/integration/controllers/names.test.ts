import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { bookmark, writesSince } from '../../support/audit.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestRepository } from '../../support/git.ts';
import { condition, type K8sObject, type Ref } from '../../support/k8s.ts';
import {
  applySource,
  marketplace,
  newRepository,
  publicUrl,
  requestPass,
  skillMd,
  waitNotReady,
  waitReady,
} from '../../support/market.ts';
import { messageOf, newMarket, skillsOf, useOperator, waitSkills } from './harness.ts';

const harness = useOperator();

/** A Skill that a person applies, with a repository of its own. */
async function personSkill(name: string, plugin: string, skill: string): Promise<Ref> {
  const { operator } = harness;
  const repository = await newRepository(operator, 'person');
  await repository.commit(marketplace({ [plugin]: { [skill]: skillMd({ name: skill, body: 'By hand.' }) } }));
  await operator.k8s.apply({
    apiVersion: API_VERSION,
    kind: 'Skill',
    metadata: { name, namespace: operator.namespace },
    spec: {
      source: { git: { url: publicUrl(operator, repository), interval: '10m' } },
      plugin,
      path: `plugins/${plugin}/skills/${skill}`,
    },
  });
  return operator.skill(name);
}

const isHeld = (object: K8sObject) =>
  object.status.candidate?.phase === 'Held' && condition(object, 'NameConflict')?.status === 'True';

/** Objects created in one second are equally old. */
const nextSecond = () => delay(1_050);

test('of two plugins with one bare name the older Skill serves; when it goes the other is promoted', async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'two', marketplace({ zeta: { dup: {} } }));
  await waitReady(operator.k8s, operator.skill('two.zeta.dup'));
  await nextSecond();
  await repository.commit(marketplace({ alpha: { dup: skillMd({ name: 'dup', body: 'Younger.' }) } }));
  await requestPass(operator.k8s, source);
  const held = await operator.k8s.waitFor(operator.skill('two.alpha.dup'), isHeld);
  expect(messageOf(held, 'NameConflict')).toMatchInlineSnapshot(
    `"Skill two.zeta.dup of this namespace holds the same name; delete that Skill, or rename the directory of this one together with its name field"`,
  );
  expect(condition(held, 'Ready')).toMatchObject({ status: 'False', reason: 'NameConflict' });
  expect(condition(held, 'Stalled')?.reason).toBe('NameConflict');
  expect(condition(held, 'Serving')?.status).toBe('False');
  await waitReady(operator.k8s, operator.skill('two.zeta.dup'));

  await repository.commit({}, { remove: ['plugins/zeta'] });
  await requestPass(operator.k8s, source);
  const heir = await waitReady(operator.k8s, operator.skill('two.alpha.dup'));
  expect(condition(heir, 'NameConflict')).toBeUndefined();
  expect(heir.status.candidate).toBeUndefined();
  await waitSkills(operator, 'two', ['alpha.dup']);
});

test('of two that appear at once the one with the smaller object name serves', async () => {
  const { operator } = harness;
  await newMarket(operator, 'tie', marketplace({ bravo: { tied: {} }, able: { tied: {} } }));
  await waitReady(operator.k8s, operator.skill('tie.able.tied'));
  await operator.k8s.waitFor(operator.skill('tie.bravo.tied'), isHeld);
  await waitSkills(operator, 'tie', ['able.tied', 'bravo.tied']);
});

test('an invalid older Skill does not keep the name from a valid younger one, and does not get it back while that serves', async () => {
  const { operator } = harness;
  const broken = skillMd({ name: 'wrong' });
  const { repository, source } = await newMarket(operator, 'old', marketplace({ a: { shared: broken } }));
  await waitNotReady(operator.k8s, operator.skill('old.a.shared'), 'Invalid');
  await nextSecond();
  await repository.commit(marketplace({ b: { shared: {} } }));
  await requestPass(operator.k8s, source);
  await waitReady(operator.k8s, operator.skill('old.b.shared'));
  await repository.commit(marketplace({ a: { shared: {} } }));
  await requestPass(operator.k8s, source);
  const held = await operator.k8s.waitFor(operator.skill('old.a.shared'), isHeld);
  expect(condition(held, 'NameConflict')?.message).toContain('Skill old.b.shared ');
  await waitReady(operator.k8s, operator.skill('old.b.shared'));
});

test('the rule holds across sources: deleting the source of the older one promotes the other', async () => {
  const { operator } = harness;
  const first = await newMarket(operator, 'first', marketplace({ p: { across: {} } }));
  await waitReady(operator.k8s, operator.skill('first.p.across'));
  await nextSecond();
  await newMarket(operator, 'second', marketplace({ p: { across: {} } }));
  const held = await operator.k8s.waitFor(operator.skill('second.p.across'), isHeld);
  expect(held.status.candidate.message).toContain('Skill first.p.across ');
  await operator.k8s.delete(first.source);
  await waitReady(operator.k8s, operator.skill('second.p.across'), 60_000);
  await waitSkills(operator, 'first', []);
});

test('a Skill that a person applied takes part like any other', async () => {
  const { operator } = harness;
  const mine = await personSkill('mine', 'own', 'personal');
  await waitReady(operator.k8s, mine);
  await nextSecond();
  await newMarket(operator, 'later', marketplace({ p: { personal: {} } }));
  const held = await operator.k8s.waitFor(operator.skill('later.p.personal'), isHeld);
  expect(held.status.candidate.message).toContain('Skill mine ');
  await operator.k8s.delete(mine);
  await waitReady(operator.k8s, operator.skill('later.p.personal'));
});

test("a person's object under the generated name is never adopted nor touched: a problem, which heals when it goes", async () => {
  const { operator } = harness;
  const mine = await personSkill('clash.p.taken', 'own', 'squatter');
  const before = await waitReady(operator.k8s, mine);
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ p: { taken: {}, beside: {} } }));
  const source = await applySource(operator, 'clash', repository);
  const object = await waitReady(operator.k8s, source);
  expect(object.status.problems).toEqual([
    {
      path: 'plugins/p/skills/taken',
      reason: 'NameClash',
      message:
        'Skill clash.p.taken was applied by somebody else and is left alone; delete or rename that object, then the next pass makes this one',
    },
  ]);
  expect(condition(object, 'Ready')?.message).toMatch(/1 skill applied; 1 problem in status.problems$/);
  await waitReady(operator.k8s, operator.skill('clash.p.beside'));
  await requestPass(operator.k8s, source);
  const after = await operator.k8s.waitFor(mine, () => true);
  expect(after).toEqual(before);

  await operator.k8s.delete(mine);
  await operator.k8s.waitGone(mine);
  const healed = await requestPass(operator.k8s, source);
  expect(healed.status.problems).toBeUndefined();
  const own = await waitReady(operator.k8s, mine);
  expect(own.metadata.ownerReferences).toMatchObject([{ kind: 'MarketplaceSource', name: 'clash', controller: true }]);
});

test('two sources never share a Skill object: the names of one cannot be those of another', async () => {
  const { operator } = harness;
  const odd = marketplace({ Plug_in: { 'odd-name': {} } });
  await newMarket(operator, 'odd', odd);
  const [name] = [...(await skillsOf(operator, 'odd')).keys()];
  expect(name).toMatch(/^plug-in-odd-name-[0-9a-f]{12}$/);
  await waitReady(operator.k8s, operator.skill(`odd.${name}`));
});

const move = (repository: TestRepository, skill: string, content: string): Promise<string> =>
  repository.commit(
    { [`plugins/to/skills/${skill}/SKILL.md`]: content },
    { remove: [`plugins/from/skills/${skill}/SKILL.md`] },
  );

const heirOf = ({ metadata }: K8sObject): string | undefined => metadata.annotations?.['skills.tfrobot.io/handover'];

test('a move between plugins keeps the name served at every moment and ends with exactly one Skill', async () => {
  const { operator } = harness;
  const files = marketplace({ from: { mover: {} }, x: { rest: {} } });
  const { repository, source } = await newMarket(operator, 'move', files);
  await waitReady(operator.k8s, operator.skill('move.from.mover'));
  const { auditLog } = operator.info;
  const mark = auditLog === undefined ? undefined : bookmark(operator.info);
  await move(repository, 'mover', skillMd({ name: 'mover' }));
  await operator.k8s.annotate(source, { 'skills.tfrobot.io/requestedAt': 'move' });
  const gaps: string[][] = [];
  await eventually(async () => {
    const movers = [...(await skillsOf(operator, 'move'))].filter(([name]) => name.endsWith('.mover'));
    if (!movers.some(([, { status }]) => status.served)) gaps.push(movers.map(([name]) => name));
    return movers.length === 1 && movers[0]?.[0] === 'to.mover';
  });
  expect(gaps).toEqual([]);
  if (mark !== undefined) {
    // The order of the writes tells what looks from outside may miss.
    const writes = writesSince(operator.info, mark, ({ namespace }) => namespace === operator.namespace);
    const first = (line: string) =>
      writes.map(({ verb, resource, name }) => `${verb} ${resource} ${name}`).indexOf(line);
    const promoted = first('patch skills/status move.to.mover');
    const removed = first('delete skills move.from.mover');
    expect([promoted >= 0, removed >= 0, promoted < removed]).toEqual([true, true, true]);
  }
  const end = await waitReady(operator.k8s, operator.skill('move.to.mover'));
  expect(heirOf(end)).toBeUndefined();
  const passed = await requestPass(operator.k8s, source);
  expect(condition(passed, 'PruneBlocked')).toBeUndefined();
  await waitSkills(operator, 'move', ['to.mover', 'x.rest']);
});

test('a move to a place where the skill is invalid keeps the old one served until the repair', async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'limp', marketplace({ from: { limper: {} } }));
  const old = operator.skill('limp.from.limper');
  const { served } = (await waitReady(operator.k8s, old)).status;
  await move(repository, 'limper', 'no frontmatter');
  await requestPass(operator.k8s, source);
  await waitNotReady(operator.k8s, operator.skill('limp.to.limper'), 'Invalid');
  await requestPass(operator.k8s, source);
  const kept = await operator.k8s.waitFor(old, (object) => heirOf(object) === 'limp.to.limper');
  expect(kept.status.served).toEqual(served);
  await repository.commit(marketplace({ to: { limper: skillMd({ name: 'limper' }) } }));
  await requestPass(operator.k8s, source);
  await waitReady(operator.k8s, operator.skill('limp.to.limper'));
  await waitSkills(operator, 'limp', ['to.limper']);
});

test('a directory that moves back while it is handed over keeps its Skill', async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'back', marketplace({ from: { returner: {} } }));
  const old = operator.skill('back.from.returner');
  const before = await waitReady(operator.k8s, old);
  await move(repository, 'returner', 'no frontmatter');
  await requestPass(operator.k8s, source);
  await operator.k8s.waitFor(old, (object) => heirOf(object) === 'back.to.returner');
  await repository.forcePush(marketplace({ from: { returner: {} } }));
  await requestPass(operator.k8s, source);
  await waitSkills(operator, 'back', ['from.returner']);
  const after = await waitReady(operator.k8s, old);
  expect([after.metadata.uid, heirOf(after)]).toEqual([before.metadata.uid, undefined]);
  expect(after.status.served.digest).toBe(before.status.served.digest);
});
