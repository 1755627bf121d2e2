/** Words, flags and variables of Dockerfile instructions. What they get is hostile: every function is linear and bounded. */

/** Longer values are no image reference, and stop an ARG that doubles itself line by line. */
const MAX_EXPANDED = 4096;
/** The platform that every build has, whatever the machine: only the variables' presence matters to the lint. */
const PLATFORM_ARGS: readonly (readonly [string, string])[] = [
  ['TARGETPLATFORM', 'linux/amd64'],
  ['TARGETOS', 'linux'],
  ['TARGETARCH', 'amd64'],
  ['TARGETVARIANT', ''],
  ['BUILDPLATFORM', 'linux/amd64'],
  ['BUILDOS', 'linux'],
  ['BUILDARCH', 'amd64'],
  ['BUILDVARIANT', ''],
];

/** The variables that a FROM line may use: the platform's, then those of the ARG lines before the first FROM. */
export const platformArgs = (): Map<string, string> => new Map(PLATFORM_ARGS);

/** Splits at blanks outside of quotes; quotes stay. */
const words = (text: string): string[] => text.match(/(?:\\.|"(?:\\.|[^"\\])*"|'[^']*'|[^\s])+/g) ?? [];

/** The word without one pair of quotes around it. */
const unquoted = (word: string): string => (/^(["']).*\1$/s.test(word) ? word.slice(1, -1) : word);

/** `--name=value` flags in front, then the operands; a JSON list gives its strings as operands. */
export function flagsAndOperands(args: string): { flags: Map<string, string>; operands: string[] } {
  const flags = new Map<string, string>();
  let rest = args;
  for (;;) {
    const [whole, name, value] = /^--([a-z-]+)(?:=(\S*))?\s*/.exec(rest) ?? [];
    if (whole === undefined || name === undefined) break;
    flags.set(name, unquoted(value ?? ''));
    rest = rest.slice(whole.length);
  }
  return { flags, operands: jsonStrings(rest) ?? words(rest).map(unquoted) };
}

/** The strings of an instruction's JSON form, or undefined when it is in shell form. */
function jsonStrings(args: string): string[] | undefined {
  if (!args.startsWith('[')) return undefined;
  try {
    const list: unknown = JSON.parse(args);
    return Array.isArray(list) && list.every((item) => typeof item === 'string') ? list : undefined;
  } catch {
    return undefined;
  }
}

const VARIABLE = /\\(.)|\$(?:\{(\w+)(?:(:?[-+])([^{}]*))?\}|(\w+))/g;

/**
 * Replaces `$NAME`, `${NAME}`, `${NAME:-word}`, `${NAME:+word}` and the forms without colon.
 * A name without a value gives nothing, as in a builder; undefined when the text uses another form or grows beyond all measure.
 */
export function expand(text: string, values: ReadonlyMap<string, string>): string | undefined {
  const word = unquoted(text);
  if (word.replaceAll(VARIABLE, '').includes('$')) return undefined;
  let room = MAX_EXPANDED;
  const expanded = word.replaceAll(VARIABLE, (_whole, escaped, braced, operator, fallback, plain) => {
    if (room < 0) return '';
    const piece = escaped ?? substitute(values.get(braced ?? plain), operator, fallback);
    room -= piece.length;
    return piece;
  });
  return room < 0 || expanded.length > MAX_EXPANDED ? undefined : expanded;
}

function substitute(value: string | undefined, operator: string | undefined, fallback: string | undefined): string {
  if (operator === undefined) return value ?? '';
  const there = value !== undefined && (value !== '' || !operator.startsWith(':'));
  if (operator.endsWith('+')) return there ? unquoted(fallback ?? '') : '';
  return there ? value : unquoted(fallback ?? '');
}

/** Notes the variables of one ARG line; what has no default counts as unset, as no build passes arguments. */
export function readArgs(args: string, values: Map<string, string>): void {
  for (const word of words(args)) {
    const at = word.indexOf('=');
    if (at < 1) continue;
    const value = expand(word.slice(at + 1), values);
    if (value === undefined) values.delete(word.slice(0, at));
    else values.set(word.slice(0, at), value);
  }
}
