import type { Compute } from '../../base/compute.ts';
import type { SkillTree } from '../../protocol/types.ts';
import type { Evaluation } from '../../store/package.types.ts';

/** Frontmatter above this size is parsed in a worker: the parser needs over 20 ms for it. */
const INLINE_FRONTMATTER = 8 * 1024;

/** Validates and packs; large content in a worker thread. */
export function evaluate(compute: Compute, tree: SkillTree, signal: AbortSignal): Promise<Evaluation> {
  let weight = 0;
  for (const file of tree.files) weight += file.content?.length ?? 0;
  const heavy = frontmatterLength(tree) > INLINE_FRONTMATTER;
  const cost = { weight: heavy ? Number.POSITIVE_INFINITY : weight, items: tree.files.length };
  return compute.run<SkillTree, Evaluation>('evaluate', tree, cost, signal);
}

/** Bytes before the closing fence, or all of SKILL.md where there is none. */
function frontmatterLength(tree: SkillTree): number {
  const content = tree.files.find((file) => file.path === 'SKILL.md')?.content;
  if (!content) return 0;
  const end = Buffer.from(content.buffer, content.byteOffset, content.byteLength).indexOf('\n---', 3);
  return end < 0 ? content.length : end;
}
