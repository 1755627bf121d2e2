import type { Style } from './screen.ts';

/** Content of one field of a table. */
export interface Cell {
  text: string;
  style?: Style | undefined;
  /** Numbers stand right. */
  right?: boolean;
}

const GAP = '  ';

const cut = (text: string, width: number): string => (text.length <= width ? text : `${text.slice(0, width - 1)}…`);

/**
 * Lines of a table with aligned columns, the header first; the last column is cut so that no line is wider than `width`.
 * Padding is computed before colours, so both give the same columns.
 */
export function table(
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  width: number,
  paint: (style: Style, text: string) => string,
): string[] {
  const widths = header.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.text.length ?? 0)));
  const last = header.length - 1;
  const before = widths.slice(0, last).reduce((sum, w) => sum + w + GAP.length, 0);
  widths[last] = Math.min(widths[last] ?? 0, Math.max(8, width - before));
  const line = (cells: readonly Cell[]): string =>
    cells
      .map(({ text, style, right }, i) => {
        const w = widths[i] ?? 0;
        const short = cut(text, w);
        const padded = right ? short.padStart(w) : i === last ? short : short.padEnd(w);
        return style ? paint(style, padded) : padded;
      })
      .join(GAP)
      .trimEnd();
  const right = rows[0]?.map((cell) => cell.right === true) ?? [];
  return [line(header.map((text, i) => ({ text, style: 'dim', right: right[i] === true }))), ...rows.map(line)];
}
