/**
 * The heavy pure functions by name, for worker threads (base/pool.ts) and for callers in their own thread.
 * This module is the second entry of the bundle and must not do anything when loaded.
 */
import { moving } from './base/pool.ts';
import type { SkillReport, SkillTree } from './protocol/types.ts';
import { validateSkill } from './protocol/validate.ts';
import { buildPackage } from './store/package.ts';
import type { BuiltPackage, Evaluation, PackageInput } from './store/package.types.ts';

const buffersOf = (built: BuiltPackage | undefined): Uint8Array[] => (built ? [built.tar] : []);

/** Checks one skill directory against the protocol. */
export const validate = (tree: SkillTree): SkillReport => validateSkill(tree);

/** Packs a valid skill. */
export const pack: (input: PackageInput) => BuiltPackage = moving(buildPackage, buffersOf);

/** Checks one skill directory and, when it is valid, packs it. */
export const evaluate: (tree: SkillTree) => Evaluation = moving(
  (tree: SkillTree): Evaluation => {
    const { files, ...report } = validateSkill(tree);
    if (!report.valid || !report.frontmatter || !files) return { report };
    return { report, built: buildPackage({ frontmatter: report.frontmatter, files }) };
  },
  (outcome) => buffersOf(outcome.built),
);

/** The same functions as a table, as `WorkerPool` takes them. */
export const tasks = { validate, pack, evaluate };
