/** Small pure helpers for text that goes into messages; what they get is hostile. */

const MAX_SHOWN = 80;
/** Control, format, surrogate and separator characters: invisible or able to change how a terminal shows the rest. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

const escaped = (character: string): string => {
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  if (character === '\r') return '\\r';
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
};

/** The text cut to `max` characters, everything unprintable escaped: fit for a message of one line, whatever it holds. */
export function show(text: string, max: number = MAX_SHOWN): string {
  let out = '';
  let length = 0;
  // Two UTF-16 units per code point at most, so hostile text of any length costs a constant.
  for (const character of text.slice(0, 2 * max + 2)) {
    const piece = UNPRINTABLE.test(character) ? escaped(character) : character;
    length += piece === character ? 1 : piece.length;
    if (length > max) return `${out}…`;
    out += piece;
  }
  return out;
}

/** The text as one argument of a command that a person may paste into a shell, or `<what>` where that is not possible. */
export function shellWord(text: string, what = 'file'): string {
  if (/^[\w@%+=:,./][\w@%+=:,./-]*$/.test(text) && text.length <= MAX_SHOWN) return text;
  return show(text) === text ? `'${text.replaceAll("'", "'\\''")}'` : `<${what}>`;
}

/** Number of Unicode code points, the unit of every length in the protocol. */
export function codePointLength(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit <= 0xdbff && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) i++;
    count++;
  }
  return count;
}

/** `2,048`: numbers in messages, the same on every machine. */
export const count = (n: number): string => String(n).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');

/** `1 file`, `2,048 files`. */
export const plural = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? '' : 's'}`;

/** `60 MiB`, `61.5 MiB`, `65,537 bytes`: sizes in messages. */
export function bytes(n: number): string {
  const mebi = n / (1024 * 1024);
  if (mebi < 1) return `${count(n)} bytes`;
  // Rounded up, so that a size just above a limit never reads like the limit.
  return `${Math.ceil(mebi * 10) / 10} MiB`;
}

/** A YAML value in quotes that a YAML reader takes back unchanged, shortened for a hint. */
export function quoted(value: string, max: number = MAX_SHOWN): string {
  const shown = show(value.trim(), max);
  return /["\\]/.test(shown) ? `'${shown.replaceAll("'", "''")}'` : `"${shown}"`;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substituted, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}

/** The candidate that `word` was probably meant to be (case, `_` for `-`, at most two wrong letters), or undefined. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > 40) return undefined;
  const plain = word.trim().toLowerCase().replaceAll(/[_ ]/g, '-');
  let best: { candidate: string; distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = editDistance(plain, candidate.toLowerCase());
    const allowed = Math.min(2, Math.floor(candidate.length / 3));
    if (distance <= allowed && distance < (best?.distance ?? 3)) best = { candidate, distance };
  }
  return best?.candidate;
}

/** Byte order of the paths' UTF-8 form, without encoding them; the order of a package's files. */
export function comparePaths(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** UTF-16 puts surrogates below U+E000–U+FFFF, UTF-8 puts them above. */
const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit);
