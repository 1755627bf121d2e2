import type { TestTree } from '../support/git.ts';
import { skillMd } from '../support/market.ts';
import { seeded } from './stats.ts';

/** A made-up skill: where it lies and what it holds. */
export interface MadeSkill {
  plugin: string;
  skill: string;
  /** `plugins/<plugin>/skills/<skill>`. */
  path: string;
  files: TestTree;
}

/** Sizes as in public marketplaces: median 7 KiB, one in a hundred above 350 KiB; files median 2. */
const MEDIAN_BYTES = 7 * 1024;
const SPREAD = 1.68;
const MAX_BYTES = 512 * 1024;
const MIN_BYTES = 512;
const MAX_FILES = 38;
const SKILLS_PER_PLUGIN = 100;
const PROSE_BYTES = 4 * 1024 * 1024;

const WORDS =
  'the a of to and in for with from each when then before after table column file report query result value step check read write list count total date name field input output error empty merge sort filter group page image text section heading link example command script folder version template draft review send store load convert extract render validate compare split join format round limit retry cache token prompt answer user model'.split(
    ' ',
  );

/** Prose that looks like Markdown; made once, files are cut from it. */
function prose(random: () => number, bytes: number): Buffer {
  const out = Buffer.alloc(bytes, '\n');
  let at = 0;
  let words = 0;
  while (at < bytes - 64) {
    at += out.write(WORDS[Math.floor(random() * WORDS.length)] ?? '', at);
    words++;
    if (words % 97 === 0) at += out.write('.\n\n## Step\n\n- ', at);
    else if (words % 13 === 0) at += out.write('.\n', at);
    else at += out.write(' ', at);
  }
  return out;
}

/** Standard normal, by Box and Muller. */
const normal = (random: () => number): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

const sizeOf = (random: () => number): number =>
  Math.round(Math.min(MAX_BYTES, Math.max(MIN_BYTES, MEDIAN_BYTES * Math.exp(SPREAD * normal(random)))));

const fileCountOf = (random: () => number): number =>
  Math.min(MAX_FILES, 1 + Math.floor(-Math.log(1 - random()) * 1.8));

/** Makes skills that differ by content and size; the same seed gives the same skills everywhere. */
export class SkillMaker {
  readonly #random: () => number;
  readonly #prose: Buffer;

  constructor(seed: number) {
    this.#random = seeded(seed);
    this.#prose = prose(this.#random, PROSE_BYTES);
  }

  /** The skill number `index` with a name that begins with `prefix`. */
  make(prefix: string, index: number): MadeSkill {
    const skill = `${prefix}-${String(index).padStart(5, '0')}`;
    const plugin = `plugin-${String(Math.floor(index / SKILLS_PER_PLUGIN)).padStart(3, '0')}`;
    const path = `plugins/${plugin}/skills/${skill}`;
    const bytes = sizeOf(this.#random);
    const count = fileCountOf(this.#random);
    const main = count === 1 ? bytes : Math.floor(bytes * 0.6);
    const files: TestTree = { [`${path}/SKILL.md`]: this.skillMd(skill, 1, main) };
    for (let i = 1; i < count; i++) {
      const share = Math.max(64, Math.floor((bytes - main) / (count - 1)));
      files[`${path}/references/part-${i}.md`] = this.#cut(share);
    }
    return { plugin, skill, path, files };
  }

  /** A SKILL.md of about that many bytes; another revision is another content. */
  skillMd(name: string, revision: number, bytes: number): string {
    const head = `Revision ${revision} of ${name}. Use it when a table has to be read, checked and turned into a report`;
    const body = this.#cut(Math.max(64, bytes - 2 * head.length - 32)).toString('latin1');
    return skillMd({ name, description: `${head}.`, body: `${head}.\n\n${body}` });
  }

  #cut(bytes: number): Buffer {
    const at = Math.floor(this.#random() * (PROSE_BYTES - bytes));
    return this.#prose.subarray(at, at + bytes);
  }
}
