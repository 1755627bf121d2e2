import { expect, test } from 'vitest';
import { API_VERSION } from '../../../src/api/labels.ts';
import { condition } from '../../support/k8s.ts';
import { applySource, marketplace, newRepository, publicUrl, waitNotReady, waitReady } from '../../support/market.ts';
import { messageOf, useOperator, waitSkills } from './harness.ts';

const harness = useOperator();

const secretRef = { name: 'any' };
const CASES: Record<string, [spec: Record<string, unknown>, field: string]> = {
  url: [
    { type: 'archive', git: null, archive: { url: 'https://example.com/a.tar.gz', sha256: 'a'.repeat(64) } },
    'spec.archive',
  ],
  upload: [{ type: 'archive', git: null, archive: { objectKey: `uploads/team/${'a'.repeat(64)}` } }, 'spec.archive'],
  inline: [
    {
      type: 'inline',
      git: null,
      inline: { configMapRef: { name: 'x' }, items: [{ key: 'a', path: 'SKILL.md', mode: 420 }] },
    },
    'spec.inline',
  ],
  proxy: [{ proxySecretRef: secretRef }, 'spec.proxySecretRef'],
};

test.each(Object.entries(CASES))('%s: Stalled NotSupportedYet that names the field', async (name, [spec, field]) => {
  const { operator } = harness;
  const repository = await newRepository(operator);
  const source = await applySource(operator, `later-${name}`, repository, spec);
  const object = await waitNotReady(operator.k8s, source, 'NotSupportedYet');
  expect(condition(object, 'Stalled')?.reason).toBe('NotSupportedYet');
  expect(messageOf(object, 'Ready')).toBe(
    `${field} is not supported by this release; remove it, or use type git, git-subdir or github`,
  );
  expect(object.status.observedGeneration).toBe(1);
  await waitSkills(operator, `later-${name}`, []);
});

test('taking the field out makes the source work; putting it in leaves the Skills alone', async () => {
  const { operator } = harness;
  const repository = await newRepository(operator);
  await repository.commit(marketplace({ p: { kept: {} } }));
  const source = await applySource(operator, 'toggled', repository, { proxySecretRef: secretRef });
  await waitNotReady(operator.k8s, source, 'NotSupportedYet');
  await operator.k8s.patch(source, { spec: { proxySecretRef: null } });
  await waitReady(operator.k8s, source);
  const before = await waitReady(operator.k8s, operator.skill('toggled.p.kept'));
  await operator.k8s.patch(source, { spec: { proxySecretRef: secretRef } });
  await waitNotReady(operator.k8s, source, 'NotSupportedYet');
  const after = await waitReady(operator.k8s, operator.skill('toggled.p.kept'));
  expect(after.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
});

test('a Secret of a GitHub App is named as such, without its values', async () => {
  const { operator } = harness;
  const key = 'very-private-key-of-the-app';
  await operator.k8s.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'app', namespace: operator.namespace },
    stringData: { githubAppID: '1', githubAppInstallationID: '2', githubAppPrivateKey: key },
  });
  const repository = await newRepository(operator);
  const source = await applySource(operator, 'app', repository, { secretRef: { name: 'app' } });
  const object = await waitNotReady(operator.k8s, source, 'NotSupportedYet');
  expect(messageOf(object, 'Ready')).toMatchInlineSnapshot(
    `"Secret "app" has key "githubAppID": GitHub Apps are not supported yet; use username and password with a token"`,
  );
  expect(JSON.stringify([object, operator.logs()])).not.toContain(key);
});

test('a Skill with a proxy for its own Git source', async () => {
  const { operator } = harness;
  const repository = await newRepository(operator);
  await operator.k8s.apply({
    apiVersion: API_VERSION,
    kind: 'Skill',
    metadata: { name: 'proxied', namespace: operator.namespace },
    spec: {
      source: { git: { url: publicUrl(operator, repository), proxySecretRef: secretRef } },
      plugin: 'p',
      path: 'plugins/p/skills/proxied',
    },
  });
  const object = await waitNotReady(operator.k8s, operator.skill('proxied'), 'NotSupportedYet');
  expect(messageOf(object, 'Ready')).toBe('spec.source.git.proxySecretRef is not supported by this release; remove it');
});
