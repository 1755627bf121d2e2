import type { Condition } from '../../api/conditions.ts';
import type { Skill } from '../../api/skill.ts';
import type { EventInput } from '../../kube/events.ts';
import type { Action } from '../../lifecycle/slots.ts';

/** Events of one status write: warnings on transitions, and switches of the template. */
export function skillEvents(skill: Skill, after: readonly Condition[], actions: readonly Action[]): EventInput[] {
  const events: EventInput[] = [];
  const was = skill.status?.conditions?.find(({ type }) => type === 'Ready');
  const is = after.find(({ type }) => type === 'Ready');
  if (is?.status === 'False' && (was?.status !== 'False' || was.reason !== is.reason)) {
    events.push({ type: 'Warning', reason: is.reason, action: 'Reconcile', note: is.message });
  }
  for (const action of actions) {
    if (action.type !== 'VersionServed') continue;
    const { from, to } = action;
    if (!from || !to.templateID || from.templateID === to.templateID) continue;
    const note = `version ${to.version} is served with template ${to.templateID} (before: ${from.templateID ?? 'none'})`;
    events.push({ type: 'Normal', reason: 'Registered', action: 'Promote', note });
  }
  return events;
}
