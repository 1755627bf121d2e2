import type { StatusFinding } from '../api/skill.ts';
import { redact } from '../base/redact.ts';
import { clip } from './condition.ts';

/** Most findings that a status lists; the count tells how many there are. */
const MAX_FINDINGS = 20;
/** Bytes that the violations (and again the warnings) of one status may take, so that a Skill stays below 16 KiB. */
const MAX_FINDINGS_BYTES = 5 * 1024;

/** A finding as the protocol room gives it. */
interface Finding {
  code: string;
  path: string;
  line?: number | undefined;
  column?: number | undefined;
  message: string;
  hint: string;
}

/** The first findings that fit into a status: at most twenty and 5 KiB, each text cut and redacted. */
export function fitFindings(findings: readonly Finding[]): StatusFinding[] {
  const out: StatusFinding[] = [];
  let bytes = 0;
  for (const { code, path, line, column, message, hint } of findings.slice(0, MAX_FINDINGS)) {
    const finding: StatusFinding = {
      code,
      path: clip(path, 512),
      ...(line === undefined ? {} : { line }),
      ...(column === undefined ? {} : { column }),
      message: clip(redact(message), 512),
      hint: clip(redact(hint), 512),
    };
    bytes += Buffer.byteLength(JSON.stringify(finding));
    if (out.length > 0 && bytes > MAX_FINDINGS_BYTES) break;
    out.push(finding);
  }
  return out;
}

/** Message of the reason Invalid: file, line and fix of the first violation, and how many there are. */
export function invalidMessage(violations: readonly Finding[]): string {
  const [first] = violations;
  if (!first) return 'the content breaks the protocol';
  const place = [first.path || 'the directory', first.line, first.line === undefined ? undefined : first.column];
  const at = place.filter((part) => part !== undefined).join(':');
  const more = violations.length - 1;
  const rest = more > 0 ? `; ${more} more in status.violations` : '';
  return `${at}: ${clip(redact(first.message), 700)} (${clip(redact(first.hint), 700)})${rest}`;
}
