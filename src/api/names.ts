import { createHash } from 'node:crypto';

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/;
const MAX_NAME = 253;
const MAX_LABEL = 63;

/** The first `length` hex digits of the SHA-256 over the parts, separated by NUL. */
const shortHash = (parts: string[], length: number): string =>
  createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, length);

const slug = (value: string, length: number): string =>
  value
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, length)
    .replaceAll(/^-+|-+$/g, '');

/**
 * Name of the Skill object of one skill directory: `<source>.<plugin>.<skill>`.
 * When a part is not a DNS label or the whole exceeds 253 characters: `<source>.<readable part>-<12 hex>`, which has one dot and
 * therefore never equals a plain name. `source` is a DNS label (the CRD sees to it).
 */
export function skillObjectName(source: string, plugin: string, skill: string): string {
  const plain = `${source}.${plugin}.${skill}`;
  if (DNS_LABEL.test(plugin) && DNS_LABEL.test(skill) && plain.length <= MAX_NAME) return plain;
  const readable = slug(`${plugin}-${skill}`, 100) || 'skill';
  return `${source}.${readable}-${shortHash([source, plugin, skill], 12)}`;
}

/** A label value that stands for `value`: itself where Kubernetes takes it, else a readable part and 8 hex digits; at most 63 characters. */
export function labelValue(value: string): string {
  if (value.length <= MAX_LABEL && LABEL_VALUE.test(value)) return value;
  const readable = slug(value, MAX_LABEL - 9);
  const hash = shortHash([value], 8);
  return readable ? `${readable}-${hash}` : hash;
}

/** The last part of a skill's path: its directory, which is also its bare name once the skill is valid. */
export const skillDirectory = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
