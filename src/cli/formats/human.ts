import { type Diagnostic, diagnosticsOf, summaryOf, type ValidateResult } from '../result.ts';
import { type Paint, painter, printable } from '../terminal.ts';

function place(diagnostic: Diagnostic): string {
  const { line, column } = diagnostic;
  const position = line === undefined ? '' : `:${line}${column === undefined ? '' : `:${column}`}`;
  return `${printable(diagnostic.file)}${position}`;
}

function block(diagnostic: Diagnostic, paint: Paint): string[] {
  const level = paint(diagnostic.level === 'error' ? 'red' : 'yellow', diagnostic.level);
  const head = `${paint('bold', place(diagnostic))} ${level} ${diagnostic.code}  ${printable(diagnostic.message)}`;
  return diagnostic.hint ? [head, `  ${paint('dim', 'fix:')} ${printable(diagnostic.hint)}`] : [head];
}

/** Text in the manner of a compiler: `file:line:column level Code  message`, a line `fix: …`, and a summary at the end. */
export function formatHuman(result: ValidateResult, options: { colors: boolean }): string {
  const paint = painter(options.colors);
  const all = diagnosticsOf(result);
  const failed = all.some((one) => one.level === 'error');
  const summary = paint(failed ? 'red' : 'green', summaryOf(result));
  return `${[...all.flatMap((one) => block(one, paint)), summary].join('\n')}\n`;
}
