import type { Finding, GitMode, SkillReport, SkillTree, TreeFile } from '../../../src/protocol/types.ts';
import { validateSkill } from '../../../src/protocol/validate.ts';

/** A file of a tree: text or bytes, and a mode. */
export function file(path: string, content: string | Uint8Array, mode: GitMode = '100644'): TreeFile {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return { path, mode, size: bytes.length, content: bytes };
}

/** A file that the source did not read. */
export const unread = (path: string, size: number, mode: GitMode = '100644'): TreeFile => ({ path, mode, size });

export const link = (path: string, target: string): TreeFile => file(path, target, '120000');

/** A skill directory named `pdf`. */
export const tree = (...files: TreeFile[]): SkillTree => ({ directory: 'pdf', path: 'plugins/docs/skills/pdf', files });

/** SKILL.md of a valid skill `pdf` with more lines of frontmatter, which start in line 4, and a body. */
export const skillMd = (fields = '', body = '# PDF\n'): TreeFile =>
  file('SKILL.md', `---\nname: pdf\ndescription: Reads PDF files.\n${fields === '' ? '' : `${fields}\n`}---\n${body}`);

/** SKILL.md with exactly these lines between the fences; the first is line 2. */
export const rawSkillMd = (frontmatter: string, body = '# PDF\n'): TreeFile =>
  file('SKILL.md', `---\n${frontmatter}\n---\n${body}`);

/** `Code path:line:column`, as short as the finding is. */
const brief = ({ code, path, line, column }: Finding): string =>
  [code, [path, line, column].filter((part) => part !== undefined && part !== '').join(':')].join(' ').trim();

/** Violations, then warnings marked with `~`. */
export const briefs = (report: SkillReport): string[] => [
  ...report.violations.map(brief),
  ...report.warnings.map((warning) => `~${brief(warning)}`),
];

export const validate = (...files: TreeFile[]): SkillReport => validateSkill(tree(...files));

/** `message → hint` of every finding. */
export const texts = (report: SkillReport): string[] =>
  [...report.violations, ...report.warnings].map(({ message, hint }) => `${message} → ${hint}`);

/** What is validated, and the findings that it gives: `Code path:line:column`, warnings with `~`. */
export interface Case {
  title: string;
  tree: SkillTree;
  findings: string[];
}

export const KIB = 1024;
export const MIB = 1024 * KIB;
/** A SKILL.md of four lines; the body starts in line 5. */
export const FM = '---\nname: pdf\ndescription: d\n---\n';
/** A Git LFS pointer. */
export const LFS = 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n';
export const testCase = (title: string, input: SkillTree, ...findings: string[]): Case => ({
  title,
  tree: input,
  findings,
});
/** Texts and single bytes, one after the other. */
export const bytes = (...values: (number | string)[]): Uint8Array =>
  Buffer.concat(values.map((v) => (typeof v === 'string' ? Buffer.from(v) : Buffer.from([v]))));
