import { createRepository, type TestRepository } from '../support/git.ts';
import { type MadeSkill, SkillMaker } from './generate.ts';
import type { Bench } from './stage.ts';

/** A skill in a pushed repository; its content is in Git alone, so that ten thousand of them stay small here. */
export type PushedSkill = Pick<MadeSkill, 'plugin' | 'skill' | 'path'>;

/** A repository and its skills. */
export interface Market {
  repository: TestRepository;
  skills: PushedSkill[];
}

const SEED = 20_250_615;
/** Skills per commit while a repository is filled: bounds the memory of this process. */
const PER_COMMIT = 1000;

/** One maker for the whole run: it holds megabytes of prose. */
export const maker = new SkillMaker(SEED);

/** Pushes `count` made-up skills into a repository of their own; `prefix` begins its name and theirs. */
export async function pushMarket({ info }: Bench, prefix: string, count: number): Promise<Market> {
  const repository = await createRepository(info.git.root, `bench-${prefix}`);
  const skills: PushedSkill[] = [];
  for (let from = 0; from < count; from += PER_COMMIT) {
    const made = Array.from({ length: Math.min(PER_COMMIT, count - from) }, (_, i) => maker.make(prefix, from + i));
    await repository.commit(Object.assign({}, ...made.map(({ files }) => files)));
    skills.push(...made.map(({ plugin, skill, path }) => ({ plugin, skill, path })));
  }
  return { repository, skills };
}
