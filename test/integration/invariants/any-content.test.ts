import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { eventually } from '../../support/eventually.ts';
import { condition, type K8sObject, refOf } from '../../support/k8s.ts';
import { marketplace, newRepository, skillMd, waitReady } from '../../support/market.ts';
import { type Operator, startOperator } from '../../support/operator.ts';
import { ALONE } from './support.ts';

let operator: Operator;
let url: string;
beforeAll(async () => {
  operator = await startOperator(inject('cluster'), { args: ALONE });
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ docs: { pdf: {}, odt: {} } }));
  url = `${operator.info.git.httpUrl}/${repository.name}.git`;
  await operator.k8s.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'odd', namespace: operator.namespace },
    data: { bearerToken: Buffer.from([0xff, 0xfe, 0, 10, 13, 65, 65, 65, 65]).toString('base64') },
  });
});
afterAll(() => operator?.[Symbol.asyncDispose]());

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 1 });
const word = fc.oneof(
  fc.stringMatching(/^[a-z]{3,8}$/),

  fc.string({ minLength: 1, maxLength: 12 }),
  fc.constantFrom('main', 'docs', 'é', '日本', '*', '{a,b}', '[x', '**', '!x', '...', '@', '%2e'),
);
const urls = fc.oneof(
  fc.constant(undefined),
  fc.constantFrom(
    'http://127.0.0.1:9/x.git',
    'http://127.0.0.1',
    'ssh://git@127.0.0.1:9/x',
    "http://127.0.0.1/'x",
    'http://127.0.0.1:70000/x',
    'http://127.0.0.1/%0a',
    'https://127.0.0.1:9/x',
    'http://[::1]:9/x.git',
    'http://127.0.0.1/-x',
    'ext::sh -c x',
    'file:///etc',
    '--upload-pack=touch',
    'allowed@evil:x',
    'http://a:b@127.0.0.1/x',
  ),
  word.map((text) => `http://127.0.0.1:9/${text}`),
);
const ref = fc.record(
  {
    branch: word,
    tag: word,
    semver: fc.constantFrom('*', '>=1', '^0.0.0', 'x || y', '1 - 2'),
    name: word.map((text) => `refs/${text}`),
    commit: fc.constantFrom('0'.repeat(40), 'a'.repeat(40)),
  },
  { requiredKeys: [] },
);
const secretRef = fc.constantFrom({ name: 'odd' }, { name: 'none' });
const template = fc.record(
  {
    labels: fc.dictionary(
      fc.constantFrom('team', 'a.b/c', 'x-y', 'skills.tfrobot.io/source'),
      fc.constantFrom('x', '', 'a_b', 'ü'),
    ),
    deletionPolicy: fc.constantFrom('Delete', 'Orphan'),
    versionHistoryLimit: fc.integer({ min: 0, max: 6 }),
  },
  { requiredKeys: [] },
);

const sourceSpec = fc
  .record({
    kind: fc.constantFrom('git', 'git', 'git', 'git-subdir', 'github', 'archive', 'inline'),
    address: urls,
    path: word,
    ref: maybe(ref),
    secretRef: maybe(secretRef),
    proxySecretRef: maybe(fc.constant({ name: 'none' })),
    webhook: maybe(fc.constant({ secretRef: { name: 'none' } })),
    include: maybe(fc.uniqueArray(word, { maxLength: 3 })),
    exclude: maybe(fc.uniqueArray(word, { maxLength: 3 })),
    prune: maybe(
      fc.record({ policy: fc.constantFrom('Keep', 'Delete'), maxPercent: fc.integer({ min: 0, max: 101 }) }),
    ),
    skillTemplate: maybe(template),
    suspend: maybe(fc.boolean()),
    interval: fc.constantFrom('10s', '168h', '1h0.5s'),
  })
  .map(({ kind, address, path, proxySecretRef, webhook, ...rest }) => ({
    ...rest,
    // Seldom, since each of them alone ends the pass.
    ...(path.length === 3 ? { proxySecretRef, webhook } : {}),
    timeout: '1s',
    type: kind,
    ...(kind === 'git' ? { git: { url: address ?? url } } : {}),
    ...(kind === 'git-subdir' ? { gitSubdir: { url: address ?? url, path } } : {}),
    ...(kind === 'github' ? { github: { repository: `x/${path}`, baseURL: 'http://127.0.0.1:9' } } : {}),
    ...(kind === 'archive'
      ? { archive: { url: 'http://127.0.0.1:9/x.zip', sha256: 'a'.repeat(64) }, ref: undefined }
      : {}),
    ...(kind === 'inline'
      ? { inline: { configMapRef: { name: 'x' }, items: [{ key: 'x', path: 'SKILL.md' }] }, ref: undefined }
      : {}),
  }));

const skillSpec = fc
  .record({
    own: fc.boolean(),
    address: urls,
    plugin: fc.oneof(fc.constant('docs'), word),
    directory: fc.oneof(fc.constantFrom('pdf', 'odt'), word),
    ref: maybe(ref),
    secretRef: maybe(secretRef),
    revision: maybe(
      fc.constantFrom(
        { commit: 'a'.repeat(40), tree: 'b'.repeat(40) },
        { commit: '0'.repeat(40), tree: '0'.repeat(64) },
      ),
    ),
    marketplace: fc.constantFrom('none', 'any-0', 'any-1'),
    suspend: maybe(fc.boolean()),
    versionHistoryLimit: maybe(fc.integer({ min: -1, max: 6 })),
  })
  .map(({ own, address, plugin, directory, marketplace: name, revision, ref: at, secretRef: secret, ...rest }) => ({
    ...rest,
    plugin,
    path: `plugins/${plugin}/skills/${directory}`,
    source: own
      ? { git: { url: address ?? url, ref: at, secretRef: secret, timeout: '1s' } }
      : { marketplaceRef: { name } },
    ...(own ? {} : { revision }),
  }));

const SEED = Number(process.env.FAST_CHECK_SEED ?? Date.now() % 1_000_000);

/** Applies what the schema takes of the generated specs, and returns it. */
async function applyAll(kind: string, specs: object[]): Promise<K8sObject[]> {
  const { k8s, namespace } = operator;
  const taken = await Promise.all(
    specs.map(async (spec, i) => {
      const object = { apiVersion: API_VERSION, kind, metadata: { name: `any-${i}`, namespace }, spec };
      return await k8s.apply(object).then(
        ([applied]) => applied,
        (error: Error) => {
          expect(error.message).toMatch(/ (?:400|422) /);
          return undefined;
        },
      );
    }),
  );
  return taken.filter((object) => object !== undefined);
}

test.for([
  ['MarketplaceSource', sourceSpec, 100],
  ['Skill', skillSpec, 100],
] as [string, fc.Arbitrary<object>, number][])(
  'whatever a %s holds that the schema takes, it gets a condition and nothing breaks (I12)',
  { timeout: 120_000 },
  async ([kind, specs, count]) => {
    const objects = await applyAll(kind, fc.sample(specs, { numRuns: count, seed: SEED }));
    expect(objects.length, `seed ${SEED}`).toBeGreaterThan(count / 10);
    for (const object of objects) {
      await eventually(
        async () => {
          const now = await operator.k8s.get(refOf(object));
          await operator.check();
          const ready = now && condition(now, 'Ready');
          if (!ready)
            throw new Error(`seed ${SEED}: ${JSON.stringify(object.spec)} has ${JSON.stringify(now?.status)}`);
          expect(ready.reason, `seed ${SEED}: ${JSON.stringify(object.spec)}: ${ready.message}`).not.toBe(
            'InternalError',
          );
          return true;
        },
        { timeoutMs: 60_000, what: `a verdict on ${kind} ${object.metadata.name}` },
      );
    }
    const metrics = await operator.metrics();
    expect(metrics.value('controller_runtime_reconcile_total', { result: 'panic' }), `seed ${SEED}`).toBe(0);
  },
);

test('and the well-formed beside them are served', { timeout: 90_000 }, async () => {
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ docs: { sibling: skillMd({ name: 'sibling' }) } }));
  await operator.k8s.apply({
    apiVersion: API_VERSION,
    kind: 'Skill',
    metadata: { name: 'sibling', namespace: operator.namespace },
    spec: {
      source: { git: { url: `${operator.info.git.httpUrl}/${repository.name}.git` } },
      plugin: 'docs',
      path: 'plugins/docs/skills/sibling',
    },
  });
  await waitReady(operator.k8s, operator.skill('sibling'), 60_000);
});
