import { comparePaths, count } from './text.ts';
import type { Finding } from './types.ts';
import { type FindingCode, type Severity, VIOLATIONS } from './violations.ts';

/** Where a finding is; line and column are 1-based, columns count UTF-16 units as editors and SARIF do. */
export interface Position {
  /** Relative to the skill's directory; `''` is the directory itself. */
  path: string;
  line?: number | undefined;
  column?: number | undefined;
}

/** Beyond this many findings of one code the rest is only counted: hostile files could hold millions. */
const MAX_PER_CODE = 200;

/** Collects the findings of one skill and gives them back in one order, whatever the order of the checks was. */
export class Findings {
  readonly #found: Finding[] = [];
  readonly #perCode = new Map<FindingCode, number>();

  /** Notes one finding; message and hint are one sentence each, made fit for one line by the caller. */
  add(code: FindingCode, at: Position, message: string, hint: string): void {
    const seen = (this.#perCode.get(code) ?? 0) + 1;
    this.#perCode.set(code, seen);
    if (seen > MAX_PER_CODE) return;
    const { path, line, column } = at;
    this.#found.push({
      code,
      path,
      ...(line === undefined ? {} : { line }),
      ...(column === undefined ? {} : { column }),
      message,
      hint,
    });
  }

  /** True when a finding of this code was added. */
  has(code: FindingCode): boolean {
    return this.#perCode.has(code);
  }

  /** Says whether another finding of this code would be kept; counts it when not, so that its text need not be made. */
  hasRoom(code: FindingCode): boolean {
    const seen = this.#perCode.get(code) ?? 0;
    if (seen < MAX_PER_CODE) return true;
    this.#perCode.set(code, seen + 1);
    return false;
  }

  /** Both lists, sorted by path, line, column and code; what was only counted comes last. */
  lists(): { violations: Finding[]; warnings: Finding[] } {
    const all = [...this.#found.sort(compareFindings), ...[...this.#overflow()].sort(compareFindings)];
    return {
      violations: all.filter((finding) => severityOf(finding) === 'violation'),
      warnings: all.filter((finding) => severityOf(finding) === 'warning'),
    };
  }

  *#overflow(): Iterable<Finding> {
    for (const [code, seen] of this.#perCode) {
      if (seen <= MAX_PER_CODE) continue;
      const rest = seen - MAX_PER_CODE;
      yield {
        code,
        path: '',
        message: `${count(rest)} more findings of this kind are not listed`,
        hint: VIOLATIONS[code].fix,
      };
    }
  }
}

const severityOf = (finding: Finding): Severity => VIOLATIONS[finding.code as FindingCode].severity;

const compareFindings = (a: Finding, b: Finding): number =>
  comparePaths(a.path, b.path) ||
  (a.line ?? 0) - (b.line ?? 0) ||
  (a.column ?? 0) - (b.column ?? 0) ||
  comparePaths(a.code, b.code) ||
  comparePaths(a.message, b.message);
