const CODES = { red: 31, yellow: 33, green: 32, cyan: 36, bold: 1, dim: 2 } as const;
/** How a piece of text looks where colours are wanted. */
export type Style = keyof typeof CODES;

/** Characters that could move the cursor, colour the terminal or reorder the line when content is hostile. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Replaces control, invisible and direction characters by `\u{…}`, so that file names and quoted values stay inert in a terminal. */
export const printable = (text: string): string =>
  text.replaceAll(UNPRINTABLE, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);

/** The same line by line: line ends stay. */
export const printableLines = (text: string): string => text.split('\n').map(printable).join('\n');

/** Wraps text in a terminal style, or returns it as it is. */
export type Paint = (style: Style | undefined, text: string) => string;

/** A `Paint` that colours or does not. */
export const painter =
  (colors: boolean): Paint =>
  (style, text) =>
    colors && style && text !== '' ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text;

/** Content of one field of a table; the text is made printable here. */
export interface Cell {
  text: string;
  style?: Style | undefined;
}

const GAP = '   ';
const MIN_LAST = 24;

const lengthOf = (text: string): number => [...text].length;
const cut = (text: string, width: number): string =>
  lengthOf(text) <= width ? text : `${[...text].slice(0, width - 1).join('')}…`;

/**
 * Lines of a table with aligned columns, the header first. With `width` the last column is cut so that no line is wider;
 * without (a pipe) nothing is ever cut. Padding is computed before colours, so both give the same columns.
 */
export function table(
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  paint: Paint,
  width?: number,
): string[] {
  const texts = rows.map((row) => row.map(({ text, style }) => ({ text: printable(text), style })));
  const widths = header.map((title, i) => Math.max(title.length, ...texts.map((row) => lengthOf(row[i]?.text ?? ''))));
  const last = header.length - 1;
  const before = widths.slice(0, last).reduce((sum, w) => sum + w + GAP.length, 0);
  const room = width === undefined ? Number.POSITIVE_INFINITY : Math.max(MIN_LAST, width - before);
  const line = (cells: readonly Cell[]): string =>
    cells
      .map(({ text, style }, i) => {
        if (i === last) return paint(style, cut(text, room));
        return paint(style, text) + ' '.repeat((widths[i] ?? 0) - lengthOf(text));
      })
      .join(GAP)
      .trimEnd();
  return [line(header.map((text): Cell => ({ text, style: 'dim' }))), ...texts.map(line)];
}

/** `JSON.stringify` with everything escaped that a terminal might obey; still the same JSON value. */
export function json(value: unknown, indent?: number): string {
  const escaped = (char: string) =>
    [...Array(char.length).keys()].map((i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join('');
  const text = JSON.stringify(value, undefined, indent);
  return text.replaceAll(UNPRINTABLE, (char) => (char === '\n' ? char : escaped(char)));
}

/** Age as kubectl writes it: `45s`, `12m`, `3h20m`, `5d`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`;
}

/** `1 skill`, `2 skills`. */
export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`;
