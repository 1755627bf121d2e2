import { messageOf } from '../base/errors.ts';
import { RUNTIME_INFO } from '../protocol/runtime.ts';
import type { Finding, SkillReport, SkillTree } from '../protocol/types.ts';
import { validateSkill } from '../protocol/validate.ts';
import { buildPackage, versionOf } from '../store/package.ts';
import type { BuiltPackage } from '../store/package.types.ts';
import type { LocalRoot } from './read.ts';
import type { SkillResult } from './result.ts';

/** A checked skill: what is printed, and the package when the skill is valid. */
export interface Checked {
  result: SkillResult;
  built?: BuiltPackage;
}

/** Content never carries secrets on purpose, but an author may paste one into a line that a message quotes. */
const redacted = (finding: Finding): Finding => ({
  ...finding,
  message: messageOf(finding.message),
  hint: messageOf(finding.hint),
});

function describe(report: SkillReport): Partial<SkillResult> {
  if (!report.frontmatter) return {};
  const { name, description, runtime } = report.frontmatter;
  const { tier, engine } = RUNTIME_INFO[runtime];
  return { name, description, runtime, tier, ...(engine === undefined ? {} : { engine }) };
}

/** Validates one skill and builds its package with the functions that the operator uses. Pure. */
export function checkSkill(tree: SkillTree, root: Pick<LocalRoot, 'root' | 'readFrom'>, path: string): Checked {
  const report = validateSkill(tree);
  const result: SkillResult = {
    root: root.root,
    path,
    readFrom: root.readFrom,
    valid: report.valid,
    violations: report.violations.map(redacted),
    warnings: report.warnings.map(redacted),
    ...describe(report),
  };
  if (!report.valid || !report.frontmatter || !report.files) return { result };
  const built = buildPackage({ frontmatter: report.frontmatter, files: report.files });
  const { digest, fileCount, byteCount } = built;
  const packed = { digest, version: versionOf(digest), files: fileCount, bytes: byteCount };
  return { result: { ...result, ...packed }, built };
}
