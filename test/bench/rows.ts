/** One measured figure. */
export interface Row {
  scenario: string;
  measure: string;
  value: number;
  /** `s`, `ms`, `MiB`, `x` for a ratio, empty for a count. */
  unit: string;
  /** Upper bound in the same unit; without one the row only informs. */
  target?: number;
}

/** ok: at most the target; undefined: there is none. */
export const verdict = ({ value, target }: Row): 'ok' | 'MISS' | undefined =>
  target === undefined ? undefined : value <= target ? 'ok' : 'MISS';

const COLUMNS = [16, 46, 12, 12, 7, 4] as const;

function quantity(value: number, unit: string): string {
  const digits = Number.isInteger(value) ? 0 : Math.abs(value) < 10 ? 3 : Math.abs(value) < 100 ? 2 : 1;
  return `${value.toFixed(digits)}${unit === '' ? '' : ` ${unit}`}`;
}

const line = (cells: readonly string[]): string =>
  cells
    .map((cell, i) => (i < 2 ? cell.padEnd(COLUMNS[i] ?? 0) : cell.padStart(COLUMNS[i] ?? 0)))
    .join(' | ')
    .trimEnd();

/** The head of the table that `format` fills. */
export const HEADER: string = line(['scenario', 'measure', 'value', 'target', 'ratio', '']);

/** A row as a line of the table; the ratio is value divided by target. */
export function format(row: Row): string {
  const { scenario, measure, value, unit, target } = row;
  const ratio = target === undefined || target === 0 ? '' : (value / target).toFixed(2);
  const bound = target === undefined ? '' : `≤ ${quantity(target, unit)}`;
  return line([scenario, measure, quantity(value, unit), bound, ratio, verdict(row) ?? '']);
}

/** The last line: how many rows have a target and how many miss it. */
export function summary(rows: readonly Row[]): string {
  const judged = rows.filter((row) => verdict(row) !== undefined);
  const missed = judged.filter((row) => verdict(row) === 'MISS');
  const names = missed.map(({ scenario, measure }) => `${scenario}: ${measure}`);
  return `${judged.length} target${judged.length === 1 ? '' : 's'}, ${missed.length} MISS${names.length > 0 ? ` (${names.join('; ')})` : ''}`;
}
