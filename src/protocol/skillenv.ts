import { isUtf8 } from 'node:buffer';
import { Findings, type Position } from './findings.ts';
import { SKILLENV } from './names.ts';
import { show } from './text.ts';
import type { Engine, Finding } from './types.ts';

/** One variable of a `.skillenv` (§5.2): a literal, or a reference into the user's private vault under the key's own name. */
export type SkillenvEntry =
  | { kind: 'literal'; key: string; value: string; line: number }
  | { kind: 'vault'; key: string; line: number };

const KEY = /^[A-Z_][A-Z0-9_]*$/;
/** Names that CubeSandbox answers with 400 at create (decisions: .skillenv). */
const REFUSED_BY_CUBESANDBOX = new Set([
  'PATH',
  'PYTHONPATH',
  'NODE_PATH',
  'ENV',
  'BASH_ENV',
  'IFS',
  'CLASSPATH',
  'RUBYOPT',
  'JAVA_TOOL_OPTIONS',
]);

/**
 * Reads a `.skillenv` (§5.3): the entries in file order, of valid lines alone, and every broken rule.
 * A caller that starts a sandbox must refuse when there are violations. Values are taken whole and appear in no message.
 */
export function parseSkillenv(bytes: Uint8Array): { entries: SkillenvEntry[]; violations: Finding[] } {
  const out = new Findings();
  const entries = readSkillenv(bytes, undefined, out);
  return { entries, violations: out.lists().violations };
}

/** The same for validation: notes into `out`, with the rules of the engine that the skill runs on. */
export function readSkillenv(bytes: Uint8Array, engine: Engine | undefined, out: Findings): SkillenvEntry[] {
  if (!checkEncoding(bytes, out)) return [];
  const text = new TextDecoder().decode(bytes);
  const firstLines = new Map<string, number>();
  const entries: SkillenvEntry[] = [];
  for (const [index, raw] of text.split('\n').entries()) {
    const line = index + 1;
    // CRs were noted for the file as a whole; the rest of the line is still worth checking.
    const content = raw.replaceAll('\r', '');
    if (content.trim() === '' || content.startsWith('#')) continue;
    const entry = readLine(content, { path: SKILLENV, line, column: 1 }, out);
    if (!entry || !checkKey(entry.key, line, firstLines, engine, out)) continue;
    entries.push(entry.value === '' ? { kind: 'vault', key: entry.key, line } : { kind: 'literal', ...entry, line });
  }
  return entries;
}

function checkEncoding(bytes: Uint8Array, out: Findings): boolean {
  const note = (what: string, hint: string) =>
    out.add('SkillenvEncodingInvalid', { path: SKILLENV, line: 1 }, `.skillenv ${what}`, hint);
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    note('starts with a byte order mark', 'save the file as UTF-8 without BOM');
    return false;
  }
  if (!isUtf8(bytes)) {
    note('is not valid UTF-8', 'save the file as UTF-8');
    return false;
  }
  if (bytes.includes(0)) {
    note('contains a NUL character', 'delete the NUL character');
    return false;
  }
  const carriageReturn = bytes.indexOf(0x0d);
  if (carriageReturn >= 0) {
    const line = lineOf(bytes, carriageReturn);
    const at = { path: SKILLENV, line };
    out.add(
      'SkillenvCarriageReturn',
      at,
      '.skillenv contains a carriage return',
      'save the file with LF line ends: dos2unix .skillenv',
    );
  }
  return true;
}

function lineOf(bytes: Uint8Array, offset: number): number {
  let line = 1;
  for (let i = 0; i < offset; i++) if (bytes[i] === 0x0a) line++;
  return line;
}

/** Splits one line at its first `=`. What stands on a bad line may be a piece of a secret and is never echoed. */
function readLine(content: string, at: Position, out: Findings): { key: string; value: string } | undefined {
  const equals = content.indexOf('=');
  if (equals < 0) {
    const hint = content.trimStart().startsWith('#')
      ? 'a comment starts with # in the first column'
      : 'write KEY=VALUE, or KEY= for a value from the vault; a value has one line';
    out.add('SkillenvLineInvalid', at, `line ${at.line} of .skillenv is neither KEY=VALUE nor a comment`, hint);
    return undefined;
  }
  const key = content.slice(0, equals);
  if (KEY.test(key)) return { key, value: content.slice(equals + 1) };
  const message = `the key in line ${at.line} of .skillenv does not match [A-Z_][A-Z0-9_]*`;
  out.add('SkillenvKeyInvalid', at, message, keyHint(key));
  return undefined;
}

function keyHint(key: string): string {
  if (/^\s*export\s/.test(key)) return 'delete the word export';
  if (/^\s*#/.test(key)) return 'a comment starts with # in the first column';
  if (KEY.test(key.trim())) return 'delete the blanks around the key';
  if (KEY.test(key.trim().toUpperCase())) return 'write the key in capital letters';
  return 'use A-Z, 0-9 and _ in the key, not starting with a digit';
}

function checkKey(
  key: string,
  line: number,
  firstLines: Map<string, number>,
  engine: Engine | undefined,
  out: Findings,
): boolean {
  const at = { path: SKILLENV, line, column: 1 };
  const name = show(key);
  const first = firstLines.get(key);
  if (first !== undefined) {
    const message = `the key ${name} in line ${line} of .skillenv stands already in line ${first}`;
    out.add('SkillenvKeyDuplicate', at, message, 'keep one of the two lines');
    return false;
  }
  firstLines.set(key, line);
  if (key.startsWith('TFROBOT_')) {
    const message = `the key ${name} in .skillenv starts with TFROBOT_, which belongs to the platform`;
    out.add(
      'SkillenvKeyReserved',
      at,
      message,
      'rename the key, or delete the line: the platform sets its own variables',
    );
    return false;
  }
  if (engine === 'cubesandbox' && (key.startsWith('LD_') || REFUSED_BY_CUBESANDBOX.has(key))) {
    const message = `the key ${name} in .skillenv is refused by CubeSandbox`;
    out.add('SkillenvKeyRefusedByEngine', at, message, 'rename the key and set the variable inside the script');
    return false;
  }
  return true;
}
