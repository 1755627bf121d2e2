import type { SkillStatus, StatusFinding } from '../api/skill.ts';
import { redact } from '../base/redact.ts';
import { clip } from './condition.ts';

/** Most findings that a status lists; the count tells how many there are. */
export const MAX_FINDINGS = 20;
/** Bytes that the violations (and again the warnings) of one status may take, before `fitStatus` looks at the whole. */
const MAX_FINDINGS_BYTES = 4 * 1024;

/** Bytes that the status of one Skill may take. */
const MAX_STATUS_BYTES = 16 * 1024;

/** A finding as the protocol room gives it. */
interface Finding {
  code: string;
  path: string;
  line?: number | undefined;
  column?: number | undefined;
  message: string;
  hint: string;
}

/** The first findings that fit into a status: at most twenty and 4 KiB, each text cut and redacted. */
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
  const at = clip(place.filter((part) => part !== undefined).join(':'), 200);
  const more = violations.length - 1;
  const rest = more > 0 ? `; ${more} more in status.violations` : '';
  return `${at}: ${clip(redact(first.message), 300)} (${clip(redact(first.hint), 300)})${rest}`;
}

/** The status, at most 16 KiB of JSON: warnings go first, then violations but the first, the beginning of the build log, the end of the description. */
export function fitStatus(status: SkillStatus): SkillStatus {
  let over = Buffer.byteLength(JSON.stringify(status)) - MAX_STATUS_BYTES;
  if (over <= 0) return status;
  const fitted = { ...status };
  const drop = (list: StatusFinding[] | undefined, keep: number): StatusFinding[] | undefined => {
    const left = [...(list ?? [])];
    while (over > 0 && left.length > keep) over -= Buffer.byteLength(JSON.stringify(left.pop())) + 1;
    return list && left;
  };
  if (status.warnings) fitted.warnings = drop(status.warnings, 0);
  if (status.violations) fitted.violations = drop(status.violations, 1);
  const { candidate, description } = status;
  if (over > 0 && candidate?.logTail) {
    const logTail = candidate.logTail.slice(over);
    over -= candidate.logTail.length - logTail.length;
    fitted.candidate = { ...candidate, logTail };
  }
  // A character takes at least a byte, so cutting as many characters as bytes are too many is always enough.
  if (over > 0 && description) fitted.description = clip(description, Math.max(1, description.length - over));
  return fitted;
}
