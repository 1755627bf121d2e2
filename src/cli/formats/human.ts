import { type Diagnostic, diagnosticsOf, summaryOf, type ValidateResult } from '../result.ts';

const CODES = { red: 31, yellow: 33, green: 32, bold: 1, dim: 2 } as const;
type Style = keyof typeof CODES;

/** Characters that could move the cursor, colour the terminal or reorder the line when content is hostile. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Replaces control, invisible and direction characters by `\u{…}`, so that file names and quoted values stay inert in a terminal. */
export const printable = (text: string): string =>
  text.replaceAll(UNPRINTABLE, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);

/** Wraps text in a terminal style, or returns it as it is when colours are off. */
const painter =
  (colors: boolean) =>
  (style: Style, text: string): string =>
    colors ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text;

function place(diagnostic: Diagnostic): string {
  const { line, column } = diagnostic;
  const position = line === undefined ? '' : `:${line}${column === undefined ? '' : `:${column}`}`;
  return `${printable(diagnostic.file)}${position}`;
}

function block(diagnostic: Diagnostic, paint: ReturnType<typeof painter>): string[] {
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
