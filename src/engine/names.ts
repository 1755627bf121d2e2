import { createHash } from 'node:crypto';
import type { Engine } from '../protocol/types.ts';
import type { TemplateSettings } from './port.ts';

/** Whose template it is and of what; every field is part of the name's hash. */
export interface TemplateIdentity {
  /** The installation id of the operator. */
  installation: string;
  namespace: string;
  /** metadata.name of the Skill. */
  skill: string;
  engine: Engine;
  /** `sha256:<64 hex>`. */
  imageDigest: string;
  /** From `settingsHash()`. */
  settings: string;
}

const MAX_BARE = 30;
const SUFFIX = /-([0-9a-f]{12})$/;

const sha256 = (fields: readonly unknown[]) => createHash('sha256').update(JSON.stringify(fields)).digest('hex');

/**
 * 16 hex digits over the settings that shape a template.
 * A status keeps them beside the template id: the name of an old version stays derivable after the settings changed.
 */
export function settingsHash(settings: TemplateSettings): string {
  const { cpuMillis, memoryMiB, writableLayerMiB } = settings.resources;
  return sha256([
    'template-settings/v1',
    cpuMillis,
    memoryMiB,
    writableLayerMiB ?? null,
    settings.startCommand ?? null,
    settings.readyCommand ?? null,
  ]).slice(0, 16);
}

/**
 * The engine-side name of a Skill's template: `<bare name ≤ 30>-<12 hex>`.
 * At most 45 characters of `[a-z0-9-]`, never an id of an engine: it has a hyphen (E2B ids have none) and never starts with `tpl-` or `snap-`.
 * Source: design, "Outside the cluster: names".
 */
export function templateName(bareName: string, identity: TemplateIdentity): string {
  const cleaned = bareName
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+/g, '')
    .slice(0, MAX_BARE)
    .replaceAll(/-+$/g, '');
  const { installation, namespace, skill, engine, imageDigest, settings } = identity;
  const suffix = sha256(['template/v1', installation, namespace, skill, engine, imageDigest, settings]).slice(0, 12);
  const name = `${cleaned || 'skill'}-${suffix}`;
  return /^(?:tpl|snap)-/.test(name) ? `s-${name}` : name;
}

/** An engine's spelling of a name without team prefix and tag, in lower case: `acme/pdf-0a…:default` → `pdf-0a…`. */
export function plainName(name: string): string {
  const last = name.slice(name.lastIndexOf('/') + 1);
  const colon = last.indexOf(':');
  return (colon < 0 ? last : last.slice(0, colon)).trim().toLowerCase();
}

/**
 * Whether two names are of one identity. Only the 12 hex digits count: they cover owner and content,
 * while the readable part may change with the skill's directory.
 */
export function sameTemplate(a: string, b: string): boolean {
  const left = SUFFIX.exec(plainName(a))?.[1];
  return left !== undefined && left === SUFFIX.exec(plainName(b))?.[1];
}

/** `repository@sha256:<64 hex>`: the only form in which an image goes to an engine. */
export const isPinnedImage = (image: string): boolean =>
  image.length <= 512 && /^[A-Za-z0-9](?!.*:\/\/)[A-Za-z0-9._:/-]*@sha256:[0-9a-f]{64}$/.test(image);
