import { type Diagnostic, diagnosticsOf, joinPath, summaryOf, type ValidateResult } from '../result.ts';
import { printable } from '../terminal.ts';

const escapeData = (text: string): string =>
  text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
const escapeProperty = (text: string): string => escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');

/** The file that a tool can open for a diagnostic: findings about a directory point at its SKILL.md. */
export const annotatedFile = (diagnostic: Diagnostic): string =>
  diagnostic.isDirectory ? joinPath(diagnostic.file, 'SKILL.md') : diagnostic.file;

function command(diagnostic: Diagnostic): string {
  const properties: [string, string | number | undefined][] = [
    ['file', annotatedFile(diagnostic)],
    ['line', diagnostic.line],
    ['col', diagnostic.column],
    ['title', diagnostic.code],
  ];
  const given = properties
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${escapeProperty(printable(String(value)))}`);
  const lines = [diagnostic.message, ...(diagnostic.hint ? [`fix: ${diagnostic.hint}`] : [])];
  return `::${diagnostic.level} ${given.join(',')}::${escapeData(lines.map(printable).join('\n'))}`;
}

/** Workflow commands of GitHub Actions, one annotation a line, and the summary as a plain last line. */
export const formatGithub = (result: ValidateResult): string =>
  `${[...diagnosticsOf(result).map(command), summaryOf(result)].join('\n')}\n`;
