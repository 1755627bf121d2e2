/** The part of Vitest's JSON report that the sum needs. */
export interface VitestReport {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  testResults: { name: string; status: string; assertionResults: { status: string }[] }[];
}

interface Summary {
  /** `N passed, N failed`, and `, N skipped` when some were. */
  line: string;
  ok: boolean;
  /** What the numbers alone do not tell. */
  notes: string[];
}

/**
 * Sums up a test run. A file that fails before its first test counts as one failure, so that no broken file hides in the numbers.
 * `code` is Vitest's exit code; null when a signal ended it.
 */
export function summarise(report: VitestReport | undefined, code: number | null): Summary {
  if (!report) {
    return {
      line: '0 passed, 0 failed',
      ok: false,
      notes: ['Vitest ended before it could report; see its output above.'],
    };
  }
  const broken = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((assertion) => assertion.status === 'failed'),
  );
  const passed = report.numPassedTests;
  const failed = report.numFailedTests + broken.length;
  const skipped = report.numPendingTests + report.numTodoTests;
  const notes = broken.map(({ name }) => `Failed outside of its tests: ${name}`);
  if (passed + failed === 0) notes.push('No test ran.');
  else if (failed === 0 && code !== 0)
    notes.push(`No test failed, but Vitest ended with code ${code}; see its output above.`);
  const line = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  return { line, ok: code === 0 && failed === 0 && passed > 0, notes };
}
