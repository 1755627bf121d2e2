import { hash } from 'node:crypto';

/** JSON with sorted keys; undefined members are left out, as in the API. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  // A loop and no chain of arrays: a pass calls this for every Skill of a source.
  let members = '';
  for (const key of Object.keys(value).sort()) {
    const member = (value as Record<string, unknown>)[key];
    if (member === undefined) continue;
    members += `${members === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(member)}`;
  }
  return `{${members}}`;
}

/** The first 32 hex digits of the sha256 of the canonical JSON: a name for a value, not a proof. */
export function hashOf(value: unknown): string {
  return hash('sha256', canonicalJson(value)).slice(0, 32);
}
