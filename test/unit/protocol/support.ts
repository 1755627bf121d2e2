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
export const brief = ({ code, path, line, column }: Finding): string =>
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
