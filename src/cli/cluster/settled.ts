import type { Skill } from '../../api/skill.ts';
import { RUNTIME_INFO } from '../../protocol/runtime.ts';
import type { Target } from './objects.ts';
import { conditionOf, type State, stateOf } from './state.ts';

/** What a command asked the operator for. */
export type Asked = { by: 'requestedAt' | 'rebuild'; value: string };

/** Where a request stands: `done` false means that the operator is still at it. */
export interface Standing {
  done: boolean;
  /** The operator has seen the request. */
  answered: boolean;
  state: State;
}

const answerOf = ({ object }: Target, { by }: Asked): string | undefined =>
  by === 'requestedAt' ? object.status?.lastHandledReconcileAt : (object as Skill).status?.lastHandledRebuild;

/** Where a request stands by the status of its object. Pure. */
export function standingOf(target: Target, asked: Asked): Standing {
  const { object } = target;
  const state = stateOf(object);
  const answered = answerOf(target, asked) === asked.value;
  // Neither is ever answered.
  if (state.word === 'Deleting' || state.word === 'Suspended') return { done: true, answered, state };
  const ready = conditionOf(object, 'Ready');
  return { done: answered && ready !== undefined && ready.status !== 'Unknown', answered, state };
}

/** Words of Skills that are still on their way to an outcome. */
const MOVING: ReadonlySet<State['word']> = new Set(['Pending', 'Progressing', 'Building', 'Registering', 'Waiting']);

/** Skills of a source that are on their way, and those that only a change can help. Pure. */
export function skillsStanding(skills: readonly Skill[]): { moving: Skill[]; bad: Skill[] } {
  const words = skills.map((skill) => ({ skill, word: stateOf(skill).word }));
  return {
    moving: words.filter(({ word }) => MOVING.has(word)).map(({ skill }) => skill),
    bad: words.filter(({ word }) => word === 'Invalid' || word === 'Failed').map(({ skill }) => skill),
  };
}

/** Whether the Skill brings an image of its own, so that there is something to build. */
export const hasOwnImage = ({ status }: Skill): boolean =>
  status?.tier === 2 ||
  [status?.served, status?.candidate].some(
    (version) => version && RUNTIME_INFO[version.runtime as keyof typeof RUNTIME_INFO]?.tier === 2,
  );
