import { REASONS } from '../base/reasons.ts';
import { VIOLATIONS } from '../protocol/violations.ts';
import type { SarifRule } from './formats/sarif.ts';

/** The reasons that discovery gives to an entry of `problems`. */
const LAYOUT_REASONS = [
  'NoSkillsFound',
  'SkillMdMissing',
  'SkillMdWrongCase',
  'SubmoduleNotSupported',
  'SymlinkNotSupported',
  'NameUnusable',
  'TooManySkills',
] as const satisfies (keyof typeof REASONS)[];

/** Every rule that a result of skillctl can name: the catalogue of violations, then the layout reasons it does not hold already. */
export function allRules(): SarifRule[] {
  const violations = Object.entries(VIOLATIONS).map(
    ([id, { severity, summary, fix }]): SarifRule => ({
      id,
      level: severity === 'warning' ? 'warning' : 'error',
      summary,
      fix,
    }),
  );
  const known = new Set(violations.map((rule) => rule.id));
  const layout = LAYOUT_REASONS.filter((id) => !known.has(id)).map(
    (id): SarifRule => ({ id, level: 'error', summary: REASONS[id] }),
  );
  return [...violations, ...layout];
}
