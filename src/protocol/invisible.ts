import type { Findings } from './findings.ts';
import { SKILL_MD } from './names.ts';
import { count, plural } from './text.ts';

/** Tags block, bidirectional controls, zero-width characters; a BOM at the start of the file has its own warning. */
const INVISIBLE =
  /[\u{e0000}-\u{e007f}]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\u180e\u200b-\u200d\u2060-\u2064\ufeff]/gu;
const JOINERS = new Set(['\u200c', '\u200d']);
const EMOJI = /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)$/u;
/** Scripts whose spelling needs the joiners. */
const JOINING_LETTER = /(?![\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}])[\p{L}\p{M}]/u;

/** Notes each kind of invisible character of SKILL.md once: code point, how often, and the byte offset of the first. */
export function checkInvisible(text: string, out: Findings): void {
  const kinds = new Map<string, { times: number; index: number }>();
  for (const { 0: character, index } of text.matchAll(INVISIBLE)) {
    if (index === 0 && character === '\ufeff') continue;
    if (JOINERS.has(character) && joinsVisibly(text, index)) continue;
    const kind = kindOf(character);
    const known = kinds.get(kind);
    if (known) known.times++;
    else kinds.set(kind, { times: 1, index });
  }
  for (const [kind, { times, index }] of kinds) {
    const before = text.slice(0, index);
    const at = { path: SKILL_MD, line: before.split('\n').length, column: index - before.lastIndexOf('\n') };
    const often = times === 1 ? 'once' : plural(times, 'time');
    const message = `SKILL.md contains the invisible ${kind} ${often}, first at byte ${count(Buffer.byteLength(before))}`;
    out.add(
      'InvisibleCharacter',
      at,
      message,
      'delete it unless it is meant: a model reads what a reviewer does not see',
    );
  }
}

/** A joiner inside an emoji or between letters of a joining script is spelling, not hiding. */
function joinsVisibly(text: string, index: number): boolean {
  const before = text.slice(Math.max(0, index - 2), index);
  const after = String.fromCodePoint(text.codePointAt(index + 1) ?? 0x20);
  if (/^\p{Extended_Pictographic}/u.test(after)) return EMOJI.test(before);
  const last = [...before].at(-1) ?? ' ';
  return JOINING_LETTER.test(last) && JOINING_LETTER.test(after);
}

/** The tags block spells text, so its characters count as one kind. */
function kindOf(character: string): string {
  const point = character.codePointAt(0) ?? 0;
  if (point >= 0xe0000) return 'Unicode tag characters (U+E0000 to U+E007F)';
  const kind = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(character)
    ? 'bidirectional control'
    : 'zero-width';
  return `${kind} character U+${point.toString(16).toUpperCase().padStart(4, '0')}`;
}
