import { fencedLines } from './fences.ts';
import type { Findings } from './findings.ts';
import { SKILL_MD } from './names.ts';
import { nearest, show } from './text.ts';

/** The three placeholders (§7.1), which are also the platform's environment variables in a sandbox. */
const PLACEHOLDERS = ['TFROBOT_SKILL_DIR', 'TFROBOT_SESSION_ID', 'TFROBOT_ROBOT_ID'] as const;
/** One value for each placeholder. */
export type PlaceholderValues = Readonly<Record<(typeof PLACEHOLDERS)[number], string>>;

/** `$TFROBOT_NAME` or `${TFROBOT_NAME}`; a name is the longest run of capitals, digits and underscores. */
const PLACEHOLDER = /\$(?:\{(TFROBOT_[A-Z0-9_]*)\}|(TFROBOT_[A-Z0-9_]*))/g;

const isKnown = (name: string): name is (typeof PLACEHOLDERS)[number] =>
  (PLACEHOLDERS as readonly string[]).includes(name);

/**
 * Replaces the placeholders of a SKILL.md body (§7.2, decisions: placeholders) and leaves every other byte as it is.
 * Fenced code blocks are literal, inline code is not; unknown names stay (validation refuses them). Values are not expanded again.
 */
export function expandPlaceholders(body: string, values: PlaceholderValues): string {
  if (!body.includes('TFROBOT_')) return body;
  const lines = body.split('\n');
  const literal = fencedLines(lines);
  const expand = (line: string) =>
    line.replaceAll(PLACEHOLDER, (whole, braced?: string, bare?: string) => {
      const name = braced ?? bare ?? '';
      return isKnown(name) ? values[name] : whole;
    });
  return lines.map((line, index) => (literal[index] ? line : expand(line))).join('\n');
}

/** Notes every placeholder of the body that does not exist; `firstLine` is the body's first line within SKILL.md. */
export function checkPlaceholders(body: string, firstLine: number, out: Findings): void {
  if (!body.includes('TFROBOT_')) return;
  const lines = body.split('\n');
  const literal = fencedLines(lines);
  for (const [index, line] of lines.entries()) {
    if (literal[index] || !line.includes('TFROBOT_')) continue;
    for (const match of line.matchAll(PLACEHOLDER)) {
      const name = match[1] ?? match[2] ?? '';
      if (isKnown(name) || !out.hasRoom('PlaceholderUnknown')) continue;
      const at = { path: SKILL_MD, line: firstLine + index, column: match.index + 1 };
      out.add('PlaceholderUnknown', at, `the placeholder ${show(match[0])} does not exist`, hintFor(name));
    }
  }
}

function hintFor(name: string): string {
  const near = nearest(name, PLACEHOLDERS);
  const literal = 'or put the text into a fenced code block to keep it as it is';
  return near ? `did you mean $${near}? ${literal}` : `use $${PLACEHOLDERS.join(', $')}, ${literal}`;
}
