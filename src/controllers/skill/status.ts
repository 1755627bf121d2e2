import type { Skill, SkillStatus, StatusFinding } from '../../api/skill.ts';
import { fitFindings, fitStatus } from '../../lifecycle/findings.ts';
import { type Slots, templateIDsOf, tierOf } from '../../lifecycle/slots.ts';
import type { Finding, Frontmatter } from '../../protocol/types.ts';
import { hashOf } from '../hash.ts';
import { isOfBuild } from './ignored.ts';

/** What the cache keeps of the lists it drops: enough to see whether a new list differs, and the few warnings of the build. */
interface Trimmed {
  trimmed?: { violations: string; warnings: string; ignored: StatusFinding[] };
}

const NOTHING = { violations: '', warnings: '', ignored: [] };

/** Fields of a Skill's status; all are this controller's. */
export const SKILL_STATUS_FIELDS = [
  'observedGeneration',
  'skillName',
  'description',
  'runtime',
  'tier',
  'observed',
  'lastHandledReconcileAt',
  'lastHandledRebuild',
  'templateIDs',
  'served',
  'candidate',
  'retired',
  'violationCount',
  'conditions',
  'trimmed',
] as const;

const listHash = (list: readonly StatusFinding[] | undefined): string =>
  list && list.length > 0 ? hashOf(list.map((finding) => ({ ...finding }))) : '';

const trimmedOf = ({ violations, warnings = [] }: SkillStatus): NonNullable<Trimmed['trimmed']> => ({
  violations: listHash(violations),
  warnings: listHash(warnings.filter((one) => !isOfBuild(one))),
  ignored: warnings.filter(isOfBuild),
});

/** Drops from a Skill what only the author reads, before the cache keeps it; its hash stays. */
export function trimSkill(skill: Skill): Skill {
  const status = skill.status as (SkillStatus & Trimmed) | undefined;
  if (!status) return skill;
  status.trimmed = trimmedOf(status);
  delete status.violations;
  delete status.warnings;
  return skill;
}

/** What an evaluation in this pass found; absent parts stay as the status has them. */
export interface Evaluated {
  observed: { commit: string; tree: string; config: string };
  violations: Finding[];
  warnings: Finding[];
  /** Of valid content. */
  frontmatter?: Frontmatter | undefined;
  digest?: string | undefined;
}

interface StatusInput {
  skill: Skill;
  slots: Slots;
  evaluated?: Evaluated | undefined;
  /** Frontmatter of the served version where it became served without an evaluation in the same pass. */
  promoted?: Frontmatter | undefined;
  summary: Pick<SkillStatus, 'conditions'> & { observedGeneration: number };
  requestedAt?: string | undefined;
  /** Value of the annotation rebuild that is answered. */
  rebuild?: string | undefined;
  /** What a build that ended in this pass said that it ignored; undefined: what the status says of it stays. */
  ignored?: readonly StatusFinding[] | undefined;
}

/** A status to write, and whether its lists must first be read live because this pass did not make them. */
export interface NextStatus {
  status: SkillStatus;
  changed: boolean;
  needsLists: boolean;
}

/** Name, description, runtime and tier: of the served version; of the newest valid content only while none is served. */
function cardOf({ skill, slots, evaluated, promoted }: StatusInput): Partial<SkillStatus> {
  const { skillName, description, runtime, tier } = skill.status ?? {};
  const { served } = slots;
  const current = !served || served.digest === evaluated?.digest ? evaluated?.frontmatter : promoted;
  if (current) {
    const { name, description, runtime } = current;
    return { skillName: name, description, runtime, tier: tierOf(runtime) };
  }
  if (served) return { skillName, description, runtime: served.runtime, tier: tierOf(served.runtime) };
  return { skillName, description, runtime, tier };
}

const drop = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T;

/** The warnings of the build that still belong to what the Skill points at. */
function ignoredOf({ skill, evaluated, ignored }: StatusInput): readonly StatusFinding[] {
  if (ignored) return ignored;
  const { candidate, served, trimmed } = (skill.status ?? {}) as SkillStatus & Trimmed;
  const moved = evaluated !== undefined && evaluated.digest !== (candidate ?? served)?.digest;
  return moved ? [] : (trimmed?.ignored ?? []);
}

/** Puts the status of a pass together and says whether it differs from the one in the cache. */
export function nextStatus(input: StatusInput, equal: (current: object, wanted: object) => boolean): NextStatus {
  const { skill, slots, evaluated, summary, requestedAt, rebuild } = input;
  const before: SkillStatus & Trimmed = skill.status ?? {};
  const templateIDs = templateIDsOf(slots.served);
  const some = <T>(list: T[]): T[] | undefined => (list.length > 0 ? list : undefined);
  const status: SkillStatus = fitStatus(
    drop({
      ...summary,
      ...cardOf(input),
      observed: evaluated?.observed ?? before.observed,
      lastHandledReconcileAt: requestedAt ?? before.lastHandledReconcileAt,
      lastHandledRebuild: rebuild ?? before.lastHandledRebuild,
      templateIDs: Object.keys(templateIDs).length > 0 ? templateIDs : undefined,
      served: slots.served,
      candidate: slots.candidate,
      retired: some(slots.retired),
      violationCount: evaluated ? evaluated.violations.length || undefined : before.violationCount,
      violations: evaluated && some(fitFindings(evaluated.violations)),
      warnings: some(fitFindings([...ignoredOf(input), ...(evaluated?.warnings ?? [])])),
    }),
  );
  const made = trimmedOf(status);
  const trimmed = evaluated ? made : { ...NOTHING, ...before.trimmed, ignored: made.ignored };
  const changed = !equal({ trimmed: NOTHING, ...before }, { ...status, trimmed });
  return { status, changed, needsLists: !evaluated && (trimmed.violations !== '' || trimmed.warnings !== '') };
}
