/**
 * Runs every test and prints the sum as the last line: `N passed, N failed` (`, N skipped` when some were).
 * Arguments go to Vitest, for example `--project unit`. Exit code 0 only when tests ran and none failed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { summarise, type VitestReport } from './lib/summary.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const VITEST = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');

const dir = mkdtempSync(join(tmpdir(), 'skill-operator-report-'));
const reportFile = join(dir, 'report.json');
// Ctrl-C reaches Vitest as well, which stops the cluster; this process waits for that.
process.on('SIGINT', () => undefined);
try {
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
  const child = spawn(process.execPath, [VITEST, 'run', ...reporters, ...process.argv.slice(2)], {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  const report = existsSync(reportFile) ? (JSON.parse(readFileSync(reportFile, 'utf8')) as VitestReport) : undefined;
  const { line, ok, notes } = summarise(report, code);
  for (const note of notes) console.log(note);
  console.log(line);
  process.exitCode = ok ? 0 : 1;
} finally {
  rmSync(dir, { recursive: true, force: true });
}
