import { isUtf8 } from 'node:buffer';
import type { Findings } from './findings.ts';
import { LIMITS, SKILL_MD } from './names.ts';
import { count } from './text.ts';

/** A SKILL.md taken apart; line numbers are 1-based within the file. */
export interface SkillMd {
  /** Text between the fences with LF line ends, for parsing. */
  frontmatter: string;
  /** Line of the file in which `frontmatter` starts. */
  frontmatterLine: number;
  /** Everything after the closing fence, byte for byte. */
  body: string;
  bodyLine: number;
}

/** Why a SKILL.md cannot be taken apart. */
type FenceProblem = 'FrontmatterMissing' | 'FrontmatterUnclosed';

const BOM = '\ufeff';
const stripBom = (text: string): string => (text.startsWith(BOM) ? text.slice(1) : text);

/**
 * Finds the fences (decisions: fence): the first line, after at most one BOM, is `---`; the next line that is `---` plus
 * optional blanks closes. Indented `---` and `---` inside a value are content. The result's `body` is what render expands.
 */
export function splitSkillMd(text: string): SkillMd | { problem: FenceProblem } {
  const content = stripBom(text);
  const opening = /^---\r?\n/.exec(content)?.[0].length;
  if (opening === undefined)
    return { problem: /^---\r?$/.test(content) ? 'FrontmatterUnclosed' : 'FrontmatterMissing' };
  let line = 2;
  for (let start = opening; start < content.length; line++) {
    const newline = content.indexOf('\n', start);
    const end = newline < 0 ? content.length : newline;
    if (content.startsWith('---', start) && /^---[ \t]*\r?$/.test(content.slice(start, end))) {
      return {
        frontmatter: content.slice(opening, start).replaceAll('\r\n', '\n'),
        frontmatterLine: 2,
        body: content.slice(newline < 0 ? content.length : newline + 1),
        bodyLine: line + 1,
      };
    }
    if (newline < 0) break;
    start = newline + 1;
  }
  return { problem: 'FrontmatterUnclosed' };
}

/** Decodes SKILL.md and takes it apart; every broken rule of the bytes and the fence is noted, undefined means no parsing. */
export function readSkillMd(
  bytes: Uint8Array,
  out: Findings,
): { text: string; parts: SkillMd | undefined } | undefined {
  if (!isUtf8(bytes)) {
    const at = { path: SKILL_MD, line: firstBrokenLine(bytes) };
    out.add('SkillMdNotUtf8', at, `SKILL.md is not valid UTF-8 in line ${at.line}`, 'save the file as UTF-8');
    return undefined;
  }
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  checkCharacters(text, out);
  const parts = splitSkillMd(text);
  if ('problem' in parts) {
    noteFenceProblem(parts.problem, stripBom(text), out);
    return { text, parts: undefined };
  }
  const size = Buffer.byteLength(parts.frontmatter);
  if (size <= LIMITS.frontmatterBytes) return { text, parts };
  const message = `the frontmatter has ${count(size)} bytes, the limit is ${count(LIMITS.frontmatterBytes)}`;
  out.add(
    'FrontmatterTooLarge',
    { path: SKILL_MD, line: 1 },
    message,
    'put long text into the body or into references/',
  );
  return { text, parts };
}

function firstBrokenLine(bytes: Uint8Array): number {
  let line = 1;
  for (let start = 0; ; line++) {
    const newline = bytes.indexOf(0x0a, start);
    if (newline < 0 || !isUtf8(bytes.subarray(start, newline))) return line;
    start = newline + 1;
  }
}

function checkCharacters(text: string, out: Findings): void {
  if (text.startsWith(BOM)) {
    const message = 'SKILL.md starts with a byte order mark';
    out.add('ByteOrderMark', { path: SKILL_MD, line: 1, column: 1 }, message, 'save the file as UTF-8 without BOM');
  }
  const nul = text.indexOf('\0');
  if (nul >= 0) {
    const at = positionAt(text, nul);
    out.add('SkillMdNulCharacter', at, 'SKILL.md contains a NUL character', 'delete it; save the file as plain text');
  }
  const lone = /\r(?!\n)/.exec(text);
  if (lone) {
    const message = 'SKILL.md contains a carriage return without a line feed';
    out.add('SkillMdLoneCarriageReturn', positionAt(text, lone.index), message, 'save the file with LF line ends');
  }
}

function positionAt(text: string, offset: number): { path: string; line: number; column: number } {
  const before = text.slice(0, offset);
  const line = before.split('\n').length;
  return { path: SKILL_MD, line, column: offset - before.lastIndexOf('\n') };
}

function noteFenceProblem(problem: FenceProblem, content: string, out: Findings): void {
  if (problem === 'FrontmatterUnclosed') {
    const message = 'no line --- closes the frontmatter of SKILL.md';
    out.add(
      'FrontmatterUnclosed',
      { path: SKILL_MD, line: 1 },
      message,
      'add a line --- after the last field, in column 1',
    );
    return;
  }
  out.add(
    'FrontmatterMissing',
    { path: SKILL_MD, line: 1, column: 1 },
    'the first line of SKILL.md is not ---',
    fenceHint(content),
  );
}

function fenceHint(content: string): string {
  if (content.startsWith(BOM)) return 'the file starts with two byte order marks: save it as UTF-8 without BOM';
  if (/^---[ \t]/.test(content)) return 'delete what follows --- in the first line, blanks too';
  if (/^\s+---/.test(content)) return 'delete the blank lines and blanks before the first ---';
  return 'start the file with three lines: ---, then name: <directory>, then description: <what and when>; close with ---';
}
