import type { Candidate, Retired, Version } from '../../../src/api/skill.ts';
import type { Context, Slots } from '../../../src/lifecycle/slots.ts';

/** A context in which nothing stands in the way. */
export const context = (extra: Partial<Context> = {}): Context => ({
  now: '2026-01-01T00:00:00Z',
  historyLimit: 1,
  deletionPolicy: 'Delete',
  buildsConfigured: true,
  hasFinalizer: true,
  deleting: false,
  suspended: false,
  ...extra,
});

/** A version of content `digest`; `extra` holds engine, template and image. */
export const version = (digest: string, runtime = 'prompt-only', extra: Partial<Version> = {}): Version => ({
  version: digest.slice(0, 12),
  digest,
  manifestSHA256: `m-${digest}`,
  commit: `c-${digest}`,
  runtime,
  files: 1,
  bytes: 10,
  ...extra,
});

/** A version with an image and a template of its own; ids follow the digest. */
export const own = (digest: string, extra: Partial<Version> = {}): Version =>
  version(digest, 'cubesandbox', { engine: 'cubesandbox', image: `i-${digest}`, templateID: `t-${digest}`, ...extra });

/** A version with its own image before anything was built. */
export const unbuilt = (digest: string): Version => version(digest, 'cubesandbox', { engine: 'cubesandbox' });

/** A version on a platform template. */
export const platform = (digest: string, templateID: string | undefined = 'cube-tpl-py'): Version =>
  version(digest, 'cubesandbox::python', {
    engine: 'cubesandbox',
    ...(templateID === undefined ? {} : { templateID }),
  });

export const candidate = (from: Version, phase: Candidate['phase'], extra: Partial<Candidate> = {}): Candidate => ({
  ...from,
  phase,
  ...extra,
});

export const kept = (from: Version): Retired => ({ ...from, state: 'Kept' });
export const deleting = (from: Version): Retired => ({ ...from, state: 'Deleting' });

/** One line per slot: `served A(i-A,t-A) | Building B | retired Kept C`. */
export function show(slots: Slots): string {
  const ids = (v: Version) => {
    const list = [v.image, v.templateID].filter((id) => id !== undefined);
    return list.length > 0 ? `${v.digest}(${list.join(',')})` : v.digest;
  };
  const parts: string[] = [];
  if (slots.served) parts.push(`served ${ids(slots.served)}`);
  if (slots.candidate) parts.push(`${slots.candidate.phase} ${ids(slots.candidate)}`);
  for (const entry of slots.retired) parts.push(`${entry.state} ${ids(entry)}`);
  return parts.join(' | ') || 'empty';
}
