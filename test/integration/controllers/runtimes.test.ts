import { expect, test } from 'vitest';
import { DOCKERFILES, SKILLENV } from '../../../src/protocol/names.ts';
import { validateSkill } from '../../../src/protocol/validate.ts';
import { buildPackage } from '../../../src/store/package.ts';
import type { BuiltPackage } from '../../../src/store/package.types.ts';
import { condition } from '../../support/k8s.ts';
import { marketplace, requestPass, skillMd, waitNotReady, waitReady } from '../../support/market.ts';
import { listObjects, readObject } from '../../support/s3.ts';
import { conditionsOf, eventsOf, messageOf, newMarket, useOperator } from './harness.ts';

const harness = useOperator();

/** The package that the operator must make of these files, computed without it. */
function expectedPackage(directory: string, files: Record<string, string | Buffer>): BuiltPackage {
  const tree = Object.entries(files).map(([path, text]) => {
    const content = Buffer.from(text);
    return { path, mode: '100644' as const, size: content.length, content };
  });
  const { frontmatter, files: kept, violations } = validateSkill({ directory, path: directory, files: tree });
  if (!frontmatter || !kept) throw new Error(JSON.stringify(violations));
  return buildPackage({ frontmatter, files: kept });
}

/** Keys of everything in the bucket that belongs to a digest, without what stands before the namespace. */
async function storedKeys(digest: string): Promise<string[]> {
  const { info, bucket } = harness.operator;
  const objects = await listObjects(info.s3, bucket);
  return objects.map(({ key }) => key).filter((key) => key.includes(digest));
}

const TIER1 = [
  ['cubesandbox::python', 'cubesandbox', 'cube-tpl-py'],
  ['cubesandbox::node', 'cubesandbox', 'cube-tpl-node'],
  ['e2b::python', 'e2b', 'e2b-python'],
  ['e2b::node', 'e2b', 'e2b-node'],
] as const;

test('a prompt-only skill is validated, stored with exactly two PUTs and served, without template', async () => {
  const { operator } = harness;
  const before = (await operator.metrics()).value('skill_operator_store_requests_total', { operation: 'put' });
  const files = {
    'SKILL.md': skillMd({ name: 'pdf', description: 'Reads PDF files.' }),
    'references/a.md': 'a',
    'logo.png': Buffer.from([0x89, 0x50, 0, 255]),
  };
  const { commit } = await newMarket(operator, 'prompt', marketplace({ docs: { pdf: files } }));
  const skill = await waitReady(operator.k8s, operator.skill('prompt.docs.pdf'));
  const built = expectedPackage('pdf', files);
  const { conditions: _, ...status } = skill.status;
  expect(status).toEqual({
    observedGeneration: 1,
    skillName: 'pdf',
    description: 'Reads PDF files.',
    runtime: 'prompt-only',
    tier: 0,
    observed: { commit, tree: skill.spec.revision.tree, config: expect.stringMatching(/^prompt-only@[0-9a-f]{12}$/) },
    served: {
      version: built.digest.slice(0, 12),
      digest: built.digest,
      manifestSHA256: built.manifestSHA256,
      commit,
      runtime: 'prompt-only',
      files: 3,
      bytes: built.byteCount,
    },
  });
  expect(conditionsOf(skill)).toMatchInlineSnapshot(`
    [
      "Ready=True Succeeded",
      "Serving=True ServingVersion",
      "Validated=True Valid",
      "Materialized=True Stored",
      "Built=True NotRequired",
      "Registered=True NotRequired",
    ]
  `);
  const after = (await operator.metrics()).value('skill_operator_store_requests_total', { operation: 'put' });
  expect(after - before).toBe(2);
});

test('what lies in the bucket is byte for byte what the pure rules build, private files apart', async () => {
  const { operator } = harness;
  const files = {
    'SKILL.md': skillMd({ name: 'crunch', runtime: 'cubesandbox::python' }),
    [SKILLENV]: 'API_KEY=\nREGION=eu-1\n',
    'scripts/main.py': 'print(1)\n',
  };
  await newMarket(operator, 'bytes', marketplace({ data: { crunch: files } }));
  const skill = await waitReady(operator.k8s, operator.skill('bytes.data.crunch'));
  const built = expectedPackage('crunch', files);
  const { digest, manifestSHA256 } = skill.status.served;
  expect({ digest, manifestSHA256 }).toEqual({ digest: built.digest, manifestSHA256: built.manifestSHA256 });
  const keys = await storedKeys(digest);
  const tail = (part: string) => new RegExp(`^v1/[0-9a-f-]{36}/${part}/${operator.namespace}/${digest}/`);
  expect(keys.map((key) => key.replace(tail('packages'), 'P/').replace(tail('private'), 'S/')).sort()).toEqual([
    'P/manifest.json',
    'P/package.tar',
    'S/skillenv',
  ]);
  const wanted = new Map<string, Uint8Array>([
    ['manifest.json', built.manifestBytes],
    ['package.tar', built.tar],
    ['skillenv', Buffer.from(files[SKILLENV])],
  ]);
  for (const key of keys) {
    const stored = await readObject(operator.info.s3, operator.bucket, key);
    expect(stored.equals(wanted.get(key.slice(key.lastIndexOf('/') + 1)) ?? Buffer.alloc(0)), key).toBe(true);
  }
});

test('every Tier 1 runtime gets the template id of the map, under its engine', async () => {
  const { operator } = harness;
  const skills = Object.fromEntries(
    TIER1.map(([runtime]) => {
      const name = `t1-${runtime.replace('::', '-')}`;
      return [name, skillMd({ name, runtime })];
    }),
  );
  await newMarket(operator, 'tier1', marketplace({ run: skills }));
  for (const [runtime, engine, id] of TIER1) {
    const ref = operator.skill(`tier1.run.t1-${runtime.replace('::', '-')}`);
    const { status } = await waitReady(operator.k8s, ref);
    expect(status).toMatchObject({
      runtime,
      tier: 1,
      templateIDs: { [engine]: id },
      served: { runtime, engine, templateID: id },
    });
    expect(Object.keys(status.templateIDs)).toEqual([engine]);
  }
});

test.each([
  ['cubesandbox', 'own-cube'],
  ['e2b', 'own-e2b'],
] as const)('a skill with its own %s image is stored and waits, without finalizer', async (engine, name) => {
  const { operator } = harness;
  const files = { 'SKILL.md': skillMd({ name, runtime: engine }), [DOCKERFILES[engine]]: 'FROM python:3.12\n' };
  await newMarket(operator, `byo-${engine}`, marketplace({ own: { [name]: files } }));
  const skill = await waitNotReady(operator.k8s, operator.skill(`byo-${engine}.own.${name}`), 'BuildNotConfigured');
  expect(skill.metadata.finalizers).toBeUndefined();
  expect(skill.status.candidate).toMatchObject({ phase: 'Queued', reason: 'BuildNotConfigured', runtime: engine });
  expect(skill.status).toMatchObject({ tier: 2, runtime: engine, skillName: name, observedGeneration: 1 });
  expect(skill.status.served).toBeUndefined();
  expect(condition(skill, 'Stalled')?.reason).toBe('BuildNotConfigured');
  expect(messageOf(skill, 'Ready')).toMatch(/runtime \w+ brings its own image .* configure builds$/);
  const keys = await storedKeys(skill.status.candidate.digest);
  expect(keys.map((key) => key.slice(key.lastIndexOf('/') + 1)).sort()).toEqual([
    'Dockerfile',
    'manifest.json',
    'package.tar',
  ]);
});

test('a source is Ready whatever its skills are; the counts and SkillsHealthy tell', async () => {
  const { operator } = harness;
  const market = marketplace({
    mix: {
      'mix-good': {},
      'mix-bad': skillMd({ name: 'other' }),
      'mix-own': { 'SKILL.md': skillMd({ name: 'mix-own', runtime: 'e2b' }), [DOCKERFILES.e2b]: 'FROM x\n' },
    },
  });
  const { source } = await newMarket(operator, 'mix', market);
  const { status } = await operator.k8s.waitFor(
    source,
    ({ status }) => status?.skills?.invalid === 1 && status.skills.ready === 1,
  );
  expect(status.skills).toEqual({ total: 3, ready: 1, invalid: 1, building: 0, failed: 0, waiting: 1 });
  const object = await operator.k8s.waitCondition(source, 'SkillsHealthy', 'False', 'SomeSkillsNotReady');
  expect(conditionsOf(object).sort()).toMatchInlineSnapshot(`
    [
      "Fetched=True Succeeded",
      "Ready=True Succeeded",
      "SkillsHealthy=False SomeSkillsNotReady",
    ]
  `);
  expect(messageOf(object, 'SkillsHealthy')).toMatchInlineSnapshot(
    `"2 of 3 skills not ready: 1 invalid, 1 waiting; kubectl -n <namespace> get skills -l skills.tfrobot.io/source=mix lists them"`,
  );
  expect(messageOf(object, 'Ready')).toMatchInlineSnapshot(`"main@sha1:<commit>: 3 skills applied"`);
});

test('the source sums up in one event; a good child has none, a bad one a warning', async () => {
  const { operator } = harness;
  const market = marketplace({ ev: { 'ev-good': {}, 'ev-bad': skillMd({ name: 'other' }) } });
  const { source } = await newMarket(operator, 'events', market);
  await waitReady(operator.k8s, operator.skill('events.ev.ev-good'));
  await waitNotReady(operator.k8s, operator.skill('events.ev.ev-bad'), 'Invalid');
  const bad = await operator.k8s.waitFor(operator.skill('events.ev.ev-bad'), () => true);
  await expect
    .poll(() => eventsOf(operator, operator.skill('events.ev.ev-bad')), { timeout: 20_000 })
    .toEqual([`Warning Invalid: ${condition(bad, 'Ready')?.message}`]);
  await expect
    .poll(() => eventsOf(operator, source), { timeout: 20_000 })
    .toEqual([
      expect.stringMatching(/^Normal Succeeded: main@sha1:\w+: 2 skills applied .*2 added, 0 changed, 0 removed/),
    ]);
  // Passes that change nothing say nothing.
  for (const ref of [source, operator.skill('events.ev.ev-bad')]) {
    await requestPass(operator.k8s, ref);
    await requestPass(operator.k8s, ref);
    expect(await eventsOf(operator, ref)).toHaveLength(1);
  }
  expect(await eventsOf(operator, operator.skill('events.ev.ev-good'))).toEqual([]);
});
