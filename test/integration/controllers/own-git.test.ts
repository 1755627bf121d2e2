import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestRepository } from '../../support/git.ts';
import { condition, type K8sObject, type Ref } from '../../support/k8s.ts';
import {
  marketplace,
  newRepository,
  publicUrl,
  requestPass,
  skillMd,
  waitNotReady,
  waitReady,
} from '../../support/market.ts';
import { conditionsOf, messageOf, useOperator } from './harness.ts';

const harness = useOperator();

/** Applies a Skill with a Git source of its own, as a person does. */
async function applySkill(
  name: string,
  repository: TestRepository,
  git: Record<string, unknown> = {},
  path = `plugins/p/skills/${name}`,
): Promise<Ref> {
  const { operator } = harness;
  await operator.k8s.apply({
    apiVersion: API_VERSION,
    kind: 'Skill',
    metadata: { name, namespace: operator.namespace },
    spec: { source: { git: { url: publicUrl(operator, repository), interval: '10m', ...git } }, plugin: 'p', path },
  });
  return operator.skill(name);
}

async function newRepositoryWith(name: string, root = ''): Promise<{ repository: TestRepository; commit: string }> {
  const repository = await newRepository(harness.operator, 'own');
  return { repository, commit: await repository.commit(marketplace({ p: { [name]: {} } }, root)) };
}

/** How often a repository was asked for its refs. */
function lookups({ name }: TestRepository): number {
  const lines = readFileSync(harness.operator.info.git.accessLog, 'utf8').split('\n');
  return lines.filter((line) => line.startsWith('info/refs ') && line.includes(`/${name}.git`)).length;
}

const passes = async (): Promise<number> =>
  (await harness.operator.metrics()).value('controller_runtime_reconcile_total', { controller: 'skill' });

test('a Skill with its own Git source becomes Ready without any MarketplaceSource', async () => {
  const { operator } = harness;
  const { repository, commit } = await newRepositoryWith('alone');
  const skill = await waitReady(operator.k8s, await applySkill('alone', repository));
  expect(conditionsOf(skill)).toMatchInlineSnapshot(`
    [
      "Ready=True Succeeded",
      "Serving=True ServingVersion",
      "Fetched=True Succeeded",
      "Validated=True Valid",
      "Materialized=True Stored",
      "Built=True NotRequired",
      "Registered=True NotRequired",
    ]
  `);
  expect(condition(skill, 'Fetched')?.message).toBe(`main@sha1:${commit}`);
  expect(skill.status).toMatchObject({ skillName: 'alone', served: { commit }, observed: { commit } });
  expect([skill.metadata.ownerReferences, skill.metadata.finalizers]).toEqual([undefined, undefined]);
});

test('it looks at every interval: a commit elsewhere causes no write, one in its directory a new version', async () => {
  const { operator } = harness;
  const { repository } = await newRepositoryWith('ticking');
  const ref = await applySkill('ticking', repository, { interval: '10s' });
  const before = await waitReady(operator.k8s, ref);
  await repository.commit({ 'README.md': 'elsewhere', ...marketplace({ p: { neighbour: {} } }) });
  const seen = lookups(repository);
  await eventually(() => lookups(repository) > seen, { timeoutMs: 40_000, what: 'the next look' });
  const ended = await passes();
  await eventually(async () => (await passes()) > ended, { timeoutMs: 40_000, what: 'the end of that pass' });
  const idle = await operator.k8s.waitFor(ref, () => true);
  expect(idle.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  const commit = await repository.commit(marketplace({ p: { ticking: skillMd({ name: 'ticking', body: 'New.' }) } }));
  const after = await operator.k8s.waitFor(ref, ({ status }) => status.served.commit === commit, { timeoutMs: 40_000 });
  expect(condition(after, 'Fetched')?.message).toBe(`main@sha1:${commit}`);
  expect(after.status.retired).toHaveLength(1);
});

test('a change of ref or path is followed at once', async () => {
  const { operator } = harness;
  const { repository, commit } = await newRepositoryWith('wander');
  const next = await repository.commit(marketplace({ p: { wander: skillMd({ name: 'wander', body: '2' }) } }), {
    branch: 'next',
  });
  const ref = await applySkill('wander', repository, { ref: { branch: 'main' } });
  expect((await waitReady(operator.k8s, ref)).status.served.commit).toBe(commit);
  await applySkill('wander', repository, { ref: { branch: 'next' } });
  await operator.k8s.waitFor(ref, ({ status }) => status.served.commit === next);
  await applySkill('wander', repository, { ref: { branch: 'next' } }, 'plugins/p/skills/nowhere');
  const lost = await waitNotReady(operator.k8s, ref, 'PathNotFound');
  expect(messageOf(lost, 'Ready')).toMatchInlineSnapshot(
    `"next@sha1:<commit> has no directory plugins/p/skills/nowhere; correct spec.path, or push the directory; version <version> stays served; retry now: kubectl -n <namespace> annotate skill wander skills.tfrobot.io/requestedAt="$(date +%s)" --overwrite"`,
  );
  expect(condition(lost, 'Serving')?.status).toBe('True');
  expect(condition(lost, 'Fetched')).toMatchObject({ status: 'False', reason: 'PathNotFound' });
  await applySkill('wander', repository, { ref: { branch: 'next' } });
  await waitReady(operator.k8s, ref);
});

test('another directory with the same files is validated anew: its name is no longer that of the directory', async () => {
  const { operator } = harness;
  const { repository } = await newRepositoryWith('twin');
  await repository.commit(marketplace({ p: { copy: skillMd({ name: 'twin' }) } }));
  const ref = await applySkill('twin', repository);
  const { served, observed } = (await waitReady(operator.k8s, ref)).status;
  await applySkill('twin', repository, {}, 'plugins/p/skills/copy');
  const bad = await waitNotReady(operator.k8s, ref, 'Invalid');
  expect(bad.status.observed.tree).toBe(observed.tree);
  expect(bad.status.violations).toMatchObject([{ path: 'SKILL.md', line: 2 }]);
  expect(bad.status.served).toEqual(served);
});

test('its path may lie below a directory of the repository', async () => {
  const { operator } = harness;
  const { repository } = await newRepositoryWith('below', 'teams/docs/');
  const ref = await applySkill('below', repository, {}, 'teams/docs/plugins/p/skills/below');
  const { status } = await waitReady(operator.k8s, ref);
  expect(status.skillName).toBe('below');
});

test('invalid content of its own names file, line and fix, and a request after the repair heals it', async () => {
  const { operator } = harness;
  const { repository } = await newRepositoryWith('mended');
  const ref = await applySkill('mended', repository);
  const { served } = (await waitReady(operator.k8s, ref)).status;
  await repository.commit(marketplace({ p: { mended: '---\nname: other\ndescription: x\n---\n' } }));
  await requestPass(operator.k8s, ref);
  const bad = await waitNotReady(operator.k8s, ref, 'Invalid');
  expect(messageOf(bad, 'Ready')).toMatchInlineSnapshot(
    `"SKILL.md:2:7: the name "other" is not the name of the directory, "mended" (write name: mended, or rename the directory to other); version <version> stays served"`,
  );
  expect(bad.status.served).toEqual(served);
  await repository.commit(marketplace({ p: { mended: skillMd({ name: 'mended', body: 'Mended.' }) } }));
  await requestPass(operator.k8s, ref);
  await operator.k8s.waitFor(ref, (object: K8sObject) => object.status.served.digest !== served.digest);
});

test('a Skill that names a source which is not there waits for it; one without revision is told how to go on', async () => {
  const { operator } = harness;
  const skill = (name: string, marketplaceRef: string) => ({
    apiVersion: API_VERSION,
    kind: 'Skill',
    metadata: { name, namespace: operator.namespace },
    spec: { source: { marketplaceRef: { name: marketplaceRef } }, plugin: 'p', path: `plugins/p/skills/${name}` },
  });
  await operator.k8s.apply(skill('orphan', 'nobody'));
  const waits = await waitNotReady(operator.k8s, operator.skill('orphan'), 'SourceNotFound');
  expect(messageOf(waits, 'Ready')).toMatchInlineSnapshot(
    `"MarketplaceSource "nobody" does not exist in this namespace; apply it, or delete this Skill; retry now: kubectl -n <namespace> annotate skill orphan skills.tfrobot.io/requestedAt="$(date +%s)" --overwrite"`,
  );
  const { repository } = await newRepositoryWith('unused');
  await operator.k8s.apply({
    apiVersion: API_VERSION,
    kind: 'MarketplaceSource',
    metadata: { name: 'nobody', namespace: operator.namespace },
    spec: { type: 'git', git: { url: publicUrl(operator, repository) } },
  });
  await requestPass(operator.k8s, operator.skill('orphan'));
  const stalled = await waitNotReady(operator.k8s, operator.skill('orphan'), 'InvalidSpec');
  expect(messageOf(stalled, 'Stalled')).toMatchInlineSnapshot(
    `"spec.revision is missing: Skills of a marketplace are made by its MarketplaceSource; to apply a Skill yourself set spec.source.git"`,
  );
});

test('a pass for another reason than its interval does not ask the remote again', async () => {
  const { operator } = harness;
  const path = 'plugins/p/skills/held';
  const [first, second] = [await newRepositoryWith('held'), await newRepositoryWith('held')];
  const holder = await applySkill('holder', first.repository, {}, path);
  await waitReady(operator.k8s, holder);
  const heir = await applySkill('heir', second.repository, {}, path);
  await waitNotReady(operator.k8s, heir, 'NameConflict');
  const seen = lookups(second.repository);
  expect(seen).toBeGreaterThan(0);
  await operator.k8s.delete(holder);
  await waitReady(operator.k8s, heir);
  expect(lookups(second.repository)).toBe(seen);
  await requestPass(operator.k8s, heir);
  expect(lookups(second.repository)).toBe(seen + 1);
});
