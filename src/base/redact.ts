/**
 * The one filter on every path by which text leaves the process (status, log, event, metric label, HTTP answer).
 * It knows the secret values that were read (raw, URL-encoded, base64) and the usual forms of secrets in text.
 */

const MASK = '***';
/** Values shorter than this are too common in ordinary text to be masked by value. */
const MIN_SECRET_LENGTH = 4;
/** Bound of the register: rotated values fall out oldest first. */
const MAX_HELD = 4096;

const held = new Set<string>();
let matcher: RegExp | undefined;

function forms(value: string): string[] {
  const base64 = Buffer.from(value).toString('base64');
  return [
    value,
    encodeURIComponent(value),
    base64,
    base64.replaceAll('=', ''),
    Buffer.from(value).toString('base64url'),
  ];
}

/** Registers a secret value; from now on `redact` masks it in all its forms. Multi-line values count per line too. */
export function holdSecret(value: string): void {
  const parts = value.includes('\n') ? [value, ...value.split(/\r?\n/)] : [value];
  for (const part of parts) {
    const trimmed = part.trim();
    // PEM guard lines are not secret and would mask ordinary messages about keys.
    if (trimmed.length < MIN_SECRET_LENGTH || trimmed.startsWith('-----')) continue;
    for (const form of forms(trimmed)) {
      held.delete(form);
      held.add(form);
    }
  }
  while (held.size > MAX_HELD) held.delete(held.values().next().value as string);
  matcher = undefined;
}

function heldMatcher(): RegExp | undefined {
  if (!matcher && held.size > 0) {
    const escaped = [...held]
      .sort((a, b) => b.length - a.length)
      .map((v) => v.replaceAll(/[.*+?^${}()|[\]\\/-]/g, '\\$&'));
    matcher = new RegExp(escaped.join('|'), 'g');
  }
  return matcher;
}

const PATTERNS: [RegExp, string][] = [
  // user:password@ and token@ in URLs; a bare ssh user name (git@) is kept, it is no secret.
  [/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@:'"]*:[^\s/@'"]*@/gi, `$1${MASK}@`],
  [/\b(https?:\/\/)[^\s/@:'"]+@/gi, `$1${MASK}@`],
  // Query strings carry signatures and SAS tokens.
  [/\b([a-z][a-z0-9+.-]*:\/\/[^\s?'"<>]+)\?[^\s'"<>]*/gi, `$1?${MASK}`],
  [/\b(authorization\s*[:=]\s*)(?:(?:basic|bearer|token|aws4-hmac-sha256)\s+)?[^\s'",]+/gi, `$1${MASK}`],
  [/\b(bearer|basic)\s+[A-Za-z0-9+/_.=~-]{8,}/gi, `$1 ${MASK}`],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, MASK],
  [/\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|AKIA[0-9A-Z]{16}|e2b_[0-9a-f]{16,})\b/g, MASK],
];

/** Returns the text with every known or recognisable secret replaced by `***`. Never throws; linear in practice. */
export function redact(text: string): string {
  const known = heldMatcher();
  let out = known ? text.replaceAll(known, MASK) : text;
  for (const [pattern, replacement] of PATTERNS) out = out.replaceAll(pattern, replacement);
  return out;
}
