import type { MarketplaceSource, Problem } from '../../api/marketplacesource.ts';
import type { Skill } from '../../api/skill.ts';
import { hasOwnImage } from './settled.ts';
import { conditionOf, stateOf } from './state.ts';
import { type Step, sourceStep, stepsOf, type Trace } from './steps.ts';

/** Reasons whose cause is the content: only a commit can help. */
const BY_AUTHOR: ReadonlySet<string> = new Set([
  'Invalid',
  'BuildFailed',
  'BuildCommandFailed',
  'ImageTooLarge',
  'SkillMdMissing',
  'SkillMdWrongCase',
  'NameUnusable',
  'SubmoduleNotSupported',
  'SymlinkNotSupported',
]);

/** What helps against reasons whose cure does not depend on the step. */
function byReason(skill: Skill, { reason, step }: NonNullable<Trace['stopped']>): string[] | undefined {
  const { name, namespace = '' } = skill.metadata;
  if (reason === 'Deleting') return ['skillctl doctor tells whether the operator runs, which has to let it go'];
  if (reason === 'SourceNotFound')
    return [`apply the source, or delete the Skill: kubectl delete skl ${name} -n ${namespace}`];
  if (reason === 'NameConflict') return ['rename one of the two: its directory and its name in SKILL.md'];
  if (!BY_AUTHOR.has(reason)) return undefined;
  const log = step === 'build' ? [`skillctl logs --build ${name} -n ${namespace}`] : [];
  const check = reason === 'Invalid' ? ['skillctl validate PATH shows the same before a push'] : [];
  return [...log, 'correct it and push a commit', ...check];
}

function nextSteps(skill: Skill, stopped: Trace['stopped']): string[] {
  const { name, namespace = '' } = skill.metadata;
  const at = `-n ${namespace}`;
  if (skill.spec.suspend) return [`skillctl resume skill ${name} ${at}`];
  if (!stopped) return [];
  const known = byReason(skill, stopped);
  if (known) return known;
  const source = skill.spec.source.marketplaceRef?.name;
  if (stopped.step === 'source' && source !== undefined) return sourceNext(source, namespace, stopped.reason);
  const failedBuild = stopped.step === 'build' && skill.status?.candidate?.phase === 'Failed';
  if (failedBuild && hasOwnImage(skill))
    return [`skillctl logs --build ${name} ${at}`, `skillctl rebuild ${name} --wait ${at}`];
  return [`skillctl reconcile skill ${name} --wait ${at}`];
}

const sourceNext = (name: string, namespace: string, reason: string): string[] =>
  reason === 'Suspended'
    ? [`skillctl resume source ${name} -n ${namespace}`]
    : [`skillctl reconcile source ${name} --wait -n ${namespace}`];

/** What stops a Skill although each of its steps is well: suspension, deletion, or a reason that belongs to no step. */
function ofWhole(skill: Skill, steps: readonly Step[]): Trace['stopped'] {
  const { word, reason, message } = stateOf(skill);
  if (word === 'Ready' || word === 'Progressing' || word === 'Building' || word === 'Registering') return undefined;
  if (word === 'Pending') return undefined;
  const at = steps.find(({ state }) => state !== 'done')?.step ?? 'served';
  return { step: at, reason, message };
}

/** The way of a Skill that exists. Pure. */
export function traceSkill(skill: Skill, source: MarketplaceSource | undefined): Trace {
  const steps = stepsOf(skill, source);
  const ready = stateOf(skill).word === 'Ready';
  const first = steps.find(({ state }) => state === 'stopped');
  const stopped = first
    ? { step: first.step, reason: first.reason ?? '', message: first.message ?? '' }
    : ofWhole(skill, steps);
  const violations = conditionOf(skill, 'Validated')?.status === 'False' ? skill.status?.violations : undefined;
  return {
    skill: skill.metadata.name,
    namespace: skill.metadata.namespace ?? '',
    exists: true,
    ready: ready && stopped === undefined,
    steps,
    ...(stopped ? { stopped } : {}),
    next: nextSteps(skill, stopped),
    ...(violations?.length ? { violations } : {}),
  };
}

/** Whether an entry of `status.problems` is about the skill that a person named: by path, by name, or by object name. */
function concerns(problem: Problem, source: MarketplaceSource, wanted: string): boolean {
  const [, plugin, skill] = /(?:^|\/)plugins\/([^/]+)\/skills\/([^/]+)/.exec(problem.path) ?? [];
  const names = plugin && skill ? [skill, `${plugin}/${skill}`, `${source.metadata.name}.${plugin}.${skill}`] : [];
  return problem.path === wanted || names.includes(wanted);
}

const PENDING: readonly Step['step'][] = ['version', 'build', 'template', 'served'];

/** The way of a skill that no object was made of: found among the problems of the sources, or kept back by a source that is not Ready. Pure. */
export function traceMissing(
  wanted: string,
  namespace: string,
  sources: readonly MarketplaceSource[],
): Trace | undefined {
  const pending = PENDING.map((step): Step => ({ step, state: 'pending', detail: 'none' }));
  const base = { skill: wanted, namespace, exists: false, ready: false };
  for (const source of sources) {
    const problem = source.status?.problems?.find((one) => concerns(one, source, wanted));
    if (!problem) continue;
    const { reason, message, path } = problem;
    const commit: Step = { step: 'commit', state: 'stopped', detail: path, reason, message };
    const { name } = source.metadata;
    const next = BY_AUTHOR.has(reason)
      ? ['correct it and push a commit', ...sourceNext(name, namespace, reason)]
      : sourceNext(name, namespace, reason);
    return {
      ...base,
      steps: [sourceStep(source), commit, ...pending],
      stopped: { step: 'commit', reason, message },
      next,
    };
  }
  const bySource = sources.filter(({ metadata }) => wanted.startsWith(`${metadata.name}.`));
  const failing = (bySource.length > 0 ? bySource : sources).find((source) => sourceStep(source).state !== 'done');
  if (!failing) return undefined;
  const step = sourceStep(failing);
  const { reason = '', message = '' } = step;
  const commit: Step = { step: 'commit', state: 'pending', detail: 'not looked for yet' };
  const next = sourceNext(failing.metadata.name, namespace, reason);
  return { ...base, steps: [step, commit, ...pending], stopped: { step: 'source', reason, message }, next };
}
