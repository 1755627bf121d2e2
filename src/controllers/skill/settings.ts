import { RUNTIMES } from '../../protocol/types.ts';
import { hashOf } from '../hash.ts';

/** Raised when a change of the rules can give another verdict on the same bytes. */
const RULES_VERSION = 2;

/** Settings of the installation that decide what becomes of a valid skill. */
export interface SkillSettings {
  /** runtime → id of the platform template. */
  tier1: Readonly<Partial<Record<string, string>>>;
}

/** Stands for content whose runtime could not be read. */
const NO_RUNTIME = 'none';

/** `status.observed.config`: the runtime of the evaluated content and a hash of the rules and of the settings it uses. */
export function configOf(settings: SkillSettings, runtime: string | undefined): string {
  const of = runtime ?? NO_RUNTIME;
  const template = runtime === undefined ? undefined : settings.tier1[runtime];
  return `${of}@${hashOf({ rules: RULES_VERSION, template }).slice(0, 12)}`;
}

/** True when an evaluation under `observed` would come out the same today. */
export function isCurrentConfig(settings: SkillSettings, observed: string | undefined): boolean {
  if (observed === undefined) return false;
  const runtime = observed.slice(0, observed.lastIndexOf('@'));
  const known = (RUNTIMES as readonly string[]).includes(runtime) ? runtime : undefined;
  return observed === configOf(settings, known);
}
