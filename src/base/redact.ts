/**
 * The one filter on every path by which text leaves the process (status, log, event, metric label, HTTP answer).
 * It knows the secret values that were read (raw, URL-encoded, base64) and the usual forms of secrets in text.
 */

const MASK = '***';
/** Values shorter than this are too common in ordinary text to be masked by value. */
const MIN_SECRET_LENGTH = 4;
/** Bound of the register in characters of all forms together: rotated values fall out oldest first. */
const MAX_HELD = 8 * 1024 * 1024;

const held = new Set<string>();
let heldLength = 0;
/** The first characters of a form → the forms that begin so, longest first. Not one expression: that has a limit of size. */
const byStart = new Map<string, string[]>();

/** The ways in which a value gets into text: as it is, in a URL, in JSON, in a header. */
function forms(value: string): string[] {
  const base64 = Buffer.from(value).toString('base64');
  return [
    value,
    // A lone surrogate has no URL form, and must not end the pass.
    encodeURIComponent(value.toWellFormed()),
    JSON.stringify(value).slice(1, -1),
    base64,
    base64.replaceAll('=', ''),
    Buffer.from(value).toString('base64url'),
  ];
}

const startOf = (form: string): string => form.slice(0, MIN_SECRET_LENGTH);

function add(form: string): void {
  // Again at the end of the queue.
  remove(form);
  held.add(form);
  heldLength += form.length;
  const peers = byStart.get(startOf(form)) ?? [];
  byStart.set(
    startOf(form),
    [...peers, form].sort((a, b) => b.length - a.length),
  );
}

function remove(form: string): void {
  if (!held.delete(form)) return;
  heldLength -= form.length;
  const peers = byStart.get(startOf(form))?.filter((peer) => peer !== form) ?? [];
  if (peers.length > 0) byStart.set(startOf(form), peers);
  else byStart.delete(startOf(form));
}

/** Registers a secret value; from now on `redact` masks it in all its forms. Multi-line values count per line too. */
export function holdSecret(value: string): void {
  const parts = value.includes('\n') ? [value, ...value.split(/\r?\n/)] : [value];
  for (const part of parts) {
    const trimmed = part.trim();
    // PEM guard lines are not secret and would mask ordinary messages about keys.
    if (trimmed.length < MIN_SECRET_LENGTH || (trimmed.startsWith('-----') && !trimmed.includes('\n'))) continue;
    for (const form of forms(trimmed)) add(form);
  }
  for (const oldest of held) {
    if (heldLength <= MAX_HELD) return;
    remove(oldest);
  }
}

/** Masks the registered values: at each place the longest that stands there. */
function maskHeld(text: string): string {
  if (held.size === 0) return text;
  let out = '';
  let kept = 0;
  for (let at = 0; at <= text.length - MIN_SECRET_LENGTH; at++) {
    const found = byStart.get(text.slice(at, at + MIN_SECRET_LENGTH))?.find((form) => text.startsWith(form, at));
    if (found === undefined) continue;
    out += text.slice(kept, at) + MASK;
    kept = at + found.length;
    at = kept - 1;
  }
  return out + text.slice(kept);
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
  let out = maskHeld(text);
  for (const [pattern, replacement] of PATTERNS) out = out.replaceAll(pattern, replacement);
  return out;
}
