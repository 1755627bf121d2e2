import manifest from '../../package.json' with { type: 'json' };
import { checkSkill } from './check.ts';
import { formatGithub } from './formats/github.ts';
import { formatHuman } from './formats/human.ts';
import { formatJson } from './formats/json.ts';
import { formatSarif } from './formats/sarif.ts';
import { EXIT, type ExitCode, type Io } from './io.ts';
import type { Output } from './outputs.ts';
import { type LocalRoot, openRoot, sourceNote } from './read.ts';
import { isClean, type ValidateResult } from './result.ts';
import { allRules } from './rules.ts';

async function checkRoot(root: LocalRoot, into: ValidateResult, signal: AbortSignal): Promise<void> {
  for (const skill of root.skills) {
    signal.throwIfAborted();
    // One skill at a time: a marketplace may be larger than memory.
    const tree = await skill.read(signal);
    into.skills.push(checkSkill(tree, root, skill.path).result);
  }
  into.problems.push(...root.problems.map((problem) => ({ root: root.root, ...problem })));
}

function render(result: ValidateResult, output: Output, io: Io): string {
  switch (output) {
    case 'human':
      return formatHuman(result, { colors: io.colors });
    case 'json':
      return formatJson(result);
    case 'sarif':
      return formatSarif(result, allRules(), manifest.version);
    case 'github':
      return formatGithub(result);
  }
}

/** `skillctl validate`: prints the result on `io.out` and returns the exit code; a PolicyError tells that a path cannot be checked. */
export async function validate(
  options: { paths: readonly string[]; output: Output },
  io: Io,
  signal: AbortSignal,
): Promise<ExitCode> {
  const result: ValidateResult = { skills: [], problems: [] };
  for (const path of options.paths) {
    await using root = await openRoot(path, io.cwd, signal);
    io.err(sourceNote(root));
    await checkRoot(root, result, signal);
  }
  io.out(render(result, options.output, io));
  return isClean(result) ? EXIT.ok : EXIT.violations;
}
