import { expect, test } from 'vitest';
import type { K8sObject } from '../../support/k8s.ts';
import { gitSource, marketplace, requestPass, skillMd, waitReady } from '../../support/market.ts';
import { newMarket, useOperator, waitSkills } from './harness.ts';

const harness = useOperator();

type Fields = Record<string, unknown>;

/** Paths of the leaves in a fieldsV1 set, such as `spec.source.marketplaceRef.name`; keyed list items by their key. */
function paths(fields: Fields, prefix = ''): string[] {
  return Object.entries(fields).flatMap(([key, inner]) => {
    if (key === '.') return [];
    const name = key.replace(/^f:/, '').replace(/^k:\{.*?"(?:type|uid)":"(.*?)".*\}$/, '[$1]');
    const path = prefix ? `${prefix}.${name}` : name;
    const below = paths(inner as Fields, path);
    return below.length > 0 ? below : [path];
  });
}

/** Field manager (with its subresource) → what it owns, two levels deep. */
function owners(object: K8sObject): Record<string, string[]> {
  const entries = (object.metadata.managedFields ?? []).map((entry) => {
    const { manager, subresource, operation, fieldsV1 } = entry as {
      manager: string;
      subresource?: string;
      operation: string;
      fieldsV1: Fields;
    };
    const uid = /\[[0-9a-f-]{36}\]/g;
    const short = paths(fieldsV1).map((path) => path.split('.').slice(0, 2).join('.').replaceAll(uid, '[uid]'));
    return [`${manager} ${operation}${subresource ? ` ${subresource}` : ''}`, [...new Set(short)].sort()] as const;
  });
  return Object.fromEntries(entries);
}

test('each manager owns exactly its fields of a generated Skill', async () => {
  const { operator } = harness;
  const template = { deletionPolicy: 'Orphan', versionHistoryLimit: 2, labels: { team: 'docs' } };
  await newMarket(operator, 'fields', marketplace({ p: { owned: {} } }), { skillTemplate: template });
  const skill = await waitReady(operator.k8s, operator.skill('fields.p.owned'));
  expect(owners(skill)).toMatchInlineSnapshot(`
    {
      "skill-operator-skill Apply status": [
        "status.conditions",
        "status.description",
        "status.observed",
        "status.observedGeneration",
        "status.runtime",
        "status.served",
        "status.skillName",
        "status.tier",
      ],
      "skill-operator-source Apply": [
        "metadata.labels",
        "metadata.ownerReferences",
        "spec.deletionPolicy",
        "spec.path",
        "spec.plugin",
        "spec.revision",
        "spec.source",
        "spec.versionHistoryLimit",
      ],
    }
  `);
  expect(skill.metadata.labels).toMatchObject({ team: 'docs', 'app.kubernetes.io/managed-by': 'skill-operator' });
  expect(skill.spec).toMatchObject({ deletionPolicy: 'Orphan', versionHistoryLimit: 2 });
});

test('the two managers of a source own their parts of its status and nothing of its spec', async () => {
  const { operator } = harness;
  const { source } = await newMarket(operator, 'halves', marketplace({ p: { halved: {} } }));
  const object = await operator.k8s.waitFor(source, ({ status }) => status.skills?.ready === 1);
  const { 'test Apply': person, ...controllers } = owners(object);
  expect(person?.every((path) => path.startsWith('spec.'))).toBe(true);
  expect(controllers).toMatchInlineSnapshot(`
    {
      "skill-operator-counts Apply status": [
        "status.conditions",
        "status.skills",
      ],
      "skill-operator-source Apply status": [
        "status.conditions",
        "status.inventory",
        "status.observedGeneration",
        "status.observedSpec",
        "status.revision",
      ],
    }
  `);
});

test("a person's labels and annotations on a generated Skill stay; a change of what the source owns is taken back", async () => {
  const { operator } = harness;
  const { source } = await newMarket(operator, 'mixed', marketplace({ p: { touched: {} } }));
  const ref = operator.skill('mixed.p.touched');
  const before = await waitReady(operator.k8s, ref);
  await operator.k8s.patch(ref, {
    metadata: { labels: { mine: 'yes', 'skills.tfrobot.io/plugin': 'forged' }, annotations: { note: 'kept' } },
    spec: { path: 'plugins/p/skills/other', revision: { tree: 'f'.repeat(40) } },
  });
  await requestPass(operator.k8s, source);
  const after = await waitReady(operator.k8s, ref);
  expect(after.spec).toEqual(before.spec);
  expect(after.metadata.labels).toEqual({ ...before.metadata.labels, mine: 'yes' });
  expect(after.metadata.annotations).toMatchObject({ note: 'kept' });
  expect(after.status.served).toEqual(before.status.served);
});

test('skillTemplate follows its changes: new values are set, removed ones go', async () => {
  const { operator } = harness;
  const labels = { team: 'docs', tier: 'gold' };
  const { source } = await newMarket(operator, 'template', marketplace({ p: { shaped: {} } }), {
    skillTemplate: { labels, deletionPolicy: 'Orphan' },
  });
  const ref = operator.skill('template.p.shaped');
  await waitReady(operator.k8s, ref);
  await operator.k8s.apply(
    gitSource(
      operator,
      'template',
      { name: await nameOfRepository(source) },
      { skillTemplate: { labels: { team: 'data' } } },
    ),
  );
  const after = await operator.k8s.waitFor(ref, ({ metadata }) => metadata.labels?.team === 'data');
  expect(after.metadata.labels?.tier).toBeUndefined();
  expect(after.spec.deletionPolicy).toBeUndefined();
  await waitReady(operator.k8s, ref);
});

/** The repository of a source of type git, out of its address. */
async function nameOfRepository(ref: Parameters<typeof requestPass>[1]): Promise<string> {
  const object = await harness.operator.k8s.waitFor(ref, () => true);
  return /([^/]+)\.git$/.exec(object.spec.git.url)?.[1] ?? '';
}

test('a GitOps tool that applies the same manifest again sees no difference and causes no write', async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'gitops', marketplace({ p: { drift: {} } }));
  const manifest = gitSource(operator, 'gitops', repository);
  await operator.k8s.waitFor(source, ({ status }) => status.skills?.ready === 1);
  const before = await operator.k8s.waitFor(source, () => true);
  for (const options of [{ dryRun: true }, {}]) {
    const [again] = await operator.k8s.apply(manifest, { force: false, ...options });
    expect(again?.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
    expect(again?.spec).toEqual(manifest.spec);
  }
  expect(before.spec).toEqual(manifest.spec);
});

test('one commit moves a generated Skill with one write to it and one to its status', async () => {
  const { operator } = harness;
  const { repository, source } = await newMarket(operator, 'writes', marketplace({ p: { counted: {} } }));
  const ref = operator.skill('writes.p.counted');
  const before = await waitReady(operator.k8s, ref);
  const commit = await repository.commit(marketplace({ p: { counted: skillMd({ name: 'counted', body: 'New.' }) } }));
  await requestPass(operator.k8s, source);
  const after = await operator.k8s.waitFor(ref, ({ status }) => status.served.commit === commit);
  expect(after.metadata.generation).toBe((before.metadata.generation ?? 0) + 1);
  expect(after.status.observedGeneration).toBe(after.metadata.generation);
  await waitSkills(operator, 'writes', ['p.counted']);
});
