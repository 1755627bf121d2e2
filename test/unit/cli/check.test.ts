import { expect, test } from 'vitest';
import { checkSkill } from '../../../src/cli/check.ts';
import type { SkillTree, TreeFile } from '../../../src/protocol/types.ts';

const ROOT = { root: 'market', readFrom: 'folder' } as const;

const file = (path: string, text: string): TreeFile => {
  const content = new TextEncoder().encode(text);
  return { path, mode: '100644', size: content.length, content };
};
const tree = (frontmatter: string, ...more: TreeFile[]): SkillTree => ({
  directory: 'pdf',
  path: 'plugins/docs/skills/pdf',
  files: [file('SKILL.md', `---\n${frontmatter}\n---\n\nDo it.\n`), ...more],
});

test('a valid skill comes with what was declared and with its package', () => {
  const { result, built } = checkSkill(
    tree('name: pdf\ndescription: Reads PDFs.\nruntime: e2b', file('.e2b.dockerfile', 'FROM debian:12-slim\n')),
    ROOT,
    'skills/pdf',
  );
  expect(result).toMatchObject({ root: 'market', path: 'skills/pdf', valid: true, violations: [], files: 2 });
  expect(result).toMatchObject({ name: 'pdf', runtime: 'e2b', tier: 2, engine: 'e2b' });
  expect(result.digest).toBe(built?.digest);
  expect(result.version).toBe(built?.digest.slice(0, 12));
  expect(result.bytes).toBe(built?.byteCount);
});

test('an invalid skill has no digest; what its frontmatter says is kept when that is valid', () => {
  const missing = checkSkill(tree('name: pdf\ndescription: Reads PDFs.\nruntime: e2b'), ROOT, '.');
  expect(missing.built).toBeUndefined();
  expect(missing.result).toMatchObject({ valid: false, name: 'pdf', runtime: 'e2b', tier: 2 });
  expect(missing.result).not.toHaveProperty('digest');
  const broken = checkSkill(tree('name: [pdf'), ROOT, '.');
  expect(broken.result).not.toHaveProperty('name');
});

test('a token that an author pasted is masked in messages and hints', () => {
  const token = `ghp_${'a1'.repeat(18)}`;
  const { result } = checkSkill(tree(`name: pdf\ndescription: ${token}: x`), ROOT, '.');
  const other = checkSkill(tree(`name: ${token}\ndescription: Reads PDFs.`), ROOT, '.');
  const text = JSON.stringify([result.violations, other.result.violations]);
  expect(text).toContain('***');
  expect(text).not.toContain(token);
});
