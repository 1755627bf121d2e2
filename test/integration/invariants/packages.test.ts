import { expect, inject, test } from 'vitest';
import { type FindingCode, VIOLATIONS } from '../../../src/protocol/violations.ts';
import { eventually } from '../../support/eventually.ts';
import { git, type TestFile, type TestRepository, type TestTree } from '../../support/git.ts';
import { condition, type K8sObject } from '../../support/k8s.ts';
import { applySource, marketplace, newRepository, requestPass, waitReady } from '../../support/market.ts';
import { startOperator } from '../../support/operator.ts';
import { CASES } from '../../unit/protocol/cases.ts';
import type { Case } from '../../unit/protocol/support.ts';
import { listSkills } from './support.ts';

/** Codes that no commit can bring about, and why. */
const UNREACHABLE: Partial<Record<FindingCode, string>> = {
  PathInvalid: 'Git refuses to make such a tree',
  ContentNotRead: 'the reader gives every blob below the limits',
};

const codesOf = ({ findings }: Case): string[] =>
  findings.filter((finding) => !finding.startsWith('~')).map((finding) => finding.split(' ')[0] ?? '');
/** Bytes of an example; a file without a size is one that no repository can be made of in a test. */
const weight = ({ tree }: Case): number =>
  tree.files.reduce((sum, { size }) => sum + (size < 0 ? Number.POSITIVE_INFINITY : size), 0);

/** The smallest example of every violation. */
const EXAMPLES = (Object.entries(VIOLATIONS) as [FindingCode, { severity: string }][])
  .filter(([code, { severity }]) => severity === 'violation' && !UNREACHABLE[code])
  .map(([code]) => {
    const [smallest] = CASES.filter((one) => one.tree.files.length > 0 && codesOf(one).includes(code)).sort(
      (a, b) => weight(a) - weight(b),
    );
    return { code, plugin: `case-${code.toLowerCase()}`, example: smallest };
  });

function testFile({ mode, size, content }: Case['tree']['files'][number]): TestFile {
  if (mode === '160000') return { submodule: '9'.repeat(40) };
  if (mode === '120000') return { symlink: Buffer.from(content ?? []).toString() };
  return { content: content ? Buffer.from(content) : Buffer.alloc(size, 'x'), mode };
}

/** One marketplace that holds them all; paths that are no UTF-8 need their bytes written as they are. */
async function commitAll(repository: TestRepository): Promise<void> {
  const tree: TestTree = {};
  const raw: Buffer[] = [];
  for (const { plugin, example } of EXAMPLES) {
    for (const file of example?.tree.files ?? []) {
      const directory = `plugins/${plugin}/skills/pdf/`;
      if (!file.rawPath) tree[`${directory}${file.path}`] = testFile(file);
      else
        raw.push(Buffer.from(`M 100644 inline ${directory}`), Buffer.from(file.rawPath), Buffer.from('\ndata 1\nx\n'));
    }
  }
  await repository.commit(tree);
  if (raw.length === 0) return;
  const head =
    'commit refs/heads/main\ncommitter T <t@example.invalid> 1760000000 +0000\ndata 1\nx\nfrom refs/heads/main^0\n';
  await git(
    repository.path,
    ['fast-import', '--quiet', '--force', '--date-format=raw'],
    Buffer.concat([Buffer.from(head), ...raw]),
  );
}

test('there is an example of every violation that a commit can hold', () => {
  expect(EXAMPLES.filter(({ example }) => !example).map(({ code }) => code)).toEqual([]);
});

test('every violation is told by its code, place and fix, and hurts nobody else', { timeout: 180_000 }, async () => {
  await using operator = await startOperator(inject('cluster'));
  const repository = await newRepository(operator);
  // The one that has no SKILL.md is a Skill only where there was one before.
  await repository.commit(marketplace({ 'case-skillmdmissing': { pdf: {} }, fine: { sibling: {} } }));
  const source = await applySource(operator, 'team', repository);
  const survivor = operator.skill('team.case-skillmdmissing.pdf');
  const served = (await waitReady(operator.k8s, survivor)).status.served;
  await repository.commit({}, { remove: ['plugins/case-skillmdmissing/skills/pdf/SKILL.md'] });
  await commitAll(repository);
  await requestPass(operator.k8s, source, 90_000);
  const skills = await eventually(
    async () => {
      const now = await listSkills(operator, 'team');
      const by = new Map(now.map((skill) => [skill.metadata.name, skill]));
      const open = EXAMPLES.filter(({ plugin, code }) => {
        const skill = by.get(`team.${plugin}.pdf`);
        return !skill || !codes(skill).includes(code);
      });
      if (open.length > 0) throw new Error(open.map(({ code }) => code).join(', '));
      return by;
    },
    { timeoutMs: 90_000, what: 'a verdict on every package', intervalMs: 250 },
  );
  for (const { code, plugin } of EXAMPLES) {
    const skill = skills.get(`team.${plugin}.pdf`) as K8sObject;
    const { violations } = skill.status;
    const finding = violations.find((one: { code: string }) => one.code === code);
    expect(finding.message, code).toMatch(/\S/);
    expect(finding.hint, code).toMatch(/\S/);
    expect(condition(skill, 'Ready'), code).toMatchObject({ status: 'False', reason: 'Invalid' });
    expect(condition(skill, 'Stalled'), code).toMatchObject({ status: 'True', reason: 'Invalid' });
    expect(condition(skill, 'Validated'), code).toMatchObject({ status: 'False', reason: 'Invalid' });
    // File, line where there is one, what is wrong, what to type.
    expect(condition(skill, 'Ready')?.message, code).toMatch(/^\S.*: .+ \(.+\)/s);
    expect(Buffer.byteLength(JSON.stringify(skill.status)), code).toBeLessThanOrEqual(16 * 1024);
  }
  const kept = await operator.k8s.get(survivor);
  expect(kept?.status.served).toEqual(served);
  expect(condition(kept as K8sObject, 'Ready')?.message).toContain(`version ${served.version} stays served`);
  await waitReady(operator.k8s, operator.skill('team.fine.sibling'));
  await waitReady(operator.k8s, source);
  const { status } = await operator.k8s.waitFor(source, (object) => object.status?.skills?.invalid === EXAMPLES.length);
  expect(status.skills).toMatchObject({ total: EXAMPLES.length + 1, ready: 1 });
});

const codes = (skill: K8sObject): string[] =>
  ((skill.status?.violations ?? []) as { code: string }[]).map(({ code }) => code);
