import type { Engine } from './types.ts';

/** The file that makes a directory a skill (§2.1); exact case. */
export const SKILL_MD = 'SKILL.md';
/** Environment declaration of a skill (§5.1); only at the skill's root. */
export const SKILLENV = '.skillenv';
/** Dockerfile of a bring-your-own image, by engine (§6.5); only at the skill's root. */
export const DOCKERFILES: Readonly<Record<Engine, string>> = {
  cubesandbox: '.cubesandbox.dockerfile',
  e2b: '.e2b.dockerfile',
};
/** The root files that never become part of a package's tar (design: names outside the cluster). */
export const PRIVATE_ROOT_FILES: readonly string[] = [SKILLENV, DOCKERFILES.cubesandbox, DOCKERFILES.e2b];

/** Limits of one skill: bytes, counts, levels (docs/spec/skill-protocol.md). */
export const LIMITS = {
  frontmatterBytes: 64 * 1024,
  skillMdBytes: 1024 * 1024,
  dockerfileBytes: 256 * 1024,
  skillenvBytes: 64 * 1024,
  files: 10_000,
  packageBytes: 60 * 1024 * 1024,
  pathBytes: 512,
  pathLevels: 32,
  nameLength: 64,
  descriptionLength: 1024,
  compatibilityLength: 500,
} as const;

const SKILL_NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** True when `name` has the characters that §3.1 allows; its length is another rule. */
export const hasSkillNameCharacters = (name: string): boolean => SKILL_NAME.test(name);

/** True for a complete skill name: 1 to 64 of `a-z 0-9 -`, no hyphen at the edges, none doubled (§3.1). */
export const isSkillName = (name: string): boolean => name.length <= LIMITS.nameLength && hasSkillNameCharacters(name);
