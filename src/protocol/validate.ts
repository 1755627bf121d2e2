import { checkDockerfile } from './dockerlint.ts';
import { type FieldsResult, readFields } from './fields.ts';
import { checkFileNames, officialName } from './filenames.ts';
import { Findings } from './findings.ts';
import { readSkillMd, type SkillMd } from './frontmatter.ts';
import { checkInvisible } from './invisible.ts';
import { SKILL_MD, SKILLENV } from './names.ts';
import { checkPlaceholders } from './placeholders.ts';
import { checkRuntimeFiles, RUNTIME_INFO } from './runtime.ts';
import { readSkillenv } from './skillenv.ts';
import { shellWord, show } from './text.ts';
import { type ResolvedTree, resolveTree } from './tree.ts';
import type { SkillReport, SkillTree } from './types.ts';
import { parseFrontmatter } from './yaml.ts';

/**
 * Validates one skill: every broken rule, not the first, sorted by path, line and column.
 * Pure and total: the same tree in any order gives the same report, and no input makes it throw.
 */
export function validateSkill(tree: SkillTree): SkillReport {
  const out = new Findings();
  const resolved = resolveTree(tree, out);
  checkFileNames(resolved.present, out);
  const { frontmatter, runtime, runtimeAt } = checkSkillMd(tree.directory, resolved, out);
  checkRuntimeFiles(runtime, resolved.present, runtimeAt ?? { line: 1 }, out);
  const { engine, dockerfile } = runtime ? RUNTIME_INFO[runtime] : {};
  const image = dockerfile === undefined ? undefined : resolved.content.get(dockerfile);
  if (engine && dockerfile !== undefined && image) checkDockerfile(engine, dockerfile, image, out);
  const skillenv = resolved.content.get(SKILLENV);
  if (skillenv) readSkillenv(skillenv, engine, out);
  const { violations, warnings } = out.lists();
  const valid = violations.length === 0;
  return {
    valid,
    violations,
    warnings,
    ...(frontmatter ? { frontmatter } : {}),
    ...(valid ? { files: resolved.files } : {}),
  };
}

function checkSkillMd(directory: string, resolved: ResolvedTree, out: Findings): FieldsResult {
  const bytes = resolved.content.get(SKILL_MD);
  if (!bytes) {
    // Present but unreadable has its own finding.
    if (!resolved.present.has(SKILL_MD)) noteMissing(directory, resolved.present, out);
    return {};
  }
  const read = readSkillMd(bytes, out);
  if (!read) return {};
  checkInvisible(read.text, out);
  if (!read.parts) return {};
  checkPlaceholders(read.parts.body, read.parts.bodyLine, out);
  return checkFrontmatter(directory, read.parts, out);
}

function checkFrontmatter(directory: string, parts: SkillMd, out: Findings): FieldsResult {
  // NUL and lone CR have findings of their own; parsing such text would only add their consequences.
  if (out.has('FrontmatterTooLarge') || /[\0\r]/.test(parts.frontmatter)) return {};
  const yaml = parseFrontmatter(parts.frontmatter, parts.frontmatterLine, out);
  return yaml ? readFields(yaml, directory, out) : {};
}

function noteMissing(directory: string, present: ReadonlySet<string>, out: Findings): void {
  const wrong = [...present].find((path) => officialName(path) === SKILL_MD);
  const hint = wrong
    ? `rename it: git mv -- ${shellWord(wrong)} ${SKILL_MD}`
    : `add ${SKILL_MD} that starts with the lines ---, name: ${show(directory)}, description: …, ---`;
  const found = wrong ? `, found ${show(wrong)}` : '';
  out.add('SkillMdMissing', { path: '' }, `the skill ${show(directory)} has no ${SKILL_MD}${found}`, hint);
}
