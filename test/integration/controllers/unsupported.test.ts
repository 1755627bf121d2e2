import { expect, test } from 'vitest';
import { condition } from '../../support/k8s.ts';
import { applySource, marketplace, newRepository, publicUrl, waitNotReady, waitReady } from '../../support/market.ts';
import { messageOf, useOperator, waitSkills } from './harness.ts';

const harness = useOperator();

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
  const inline = { configMapRef: { name: 'x' }, items: [{ key: 'a', path: 'SKILL.md' }] };
  const asInline = { type: 'inline', git: null, inline };
  const source = await applySource(operator, 'toggled', repository, asInline);
  await waitNotReady(operator.k8s, source, 'NotSupportedYet');
  await operator.k8s.patch(source, {
    spec: { type: 'git', git: { url: publicUrl(operator, repository) }, inline: null },
  });
  await waitReady(operator.k8s, source);
  const before = await waitReady(operator.k8s, operator.skill('toggled.p.kept'));
  await operator.k8s.patch(source, { spec: asInline });
  await waitNotReady(operator.k8s, source, 'NotSupportedYet');
  const after = await waitReady(operator.k8s, operator.skill('toggled.p.kept'));
  expect(after.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
});
