import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { MARKETPLACE_SOURCES, SKILLS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import { listAll } from '../cluster/objects.ts';
import type { Session } from '../cluster/session.ts';
import { conditionOf } from '../cluster/state.ts';
import { count } from '../terminal.ts';
import { type Check, type Finding, fail, ok, type SeenByOperator, warn } from './finding.ts';

/** What the operator says in the conditions of its objects. Pure. */
export function seenIn(objects: readonly (MarketplaceSource | Skill)[]): SeenByOperator {
  const reasons = new Map<string, { count: number; message: string }>();
  let ready = 0;
  for (const object of objects) {
    const condition = conditionOf(object, 'Ready');
    if (condition?.status === 'True' && 'source' in object.spec) ready++;
    if (condition?.status !== 'False') continue;
    const before = reasons.get(condition.reason);
    reasons.set(condition.reason, { count: (before?.count ?? 0) + 1, message: before?.message ?? condition.message });
  }
  return { ready, reasons };
}

/** Reads every source and Skill that the person may see: of the cluster, else of the namespace. */
export async function seenByOperator(session: Session, signal: AbortSignal): Promise<SeenByOperator> {
  const lists = async (scope: { namespace?: string }) => [
    ...(await listAll<MarketplaceSource>(session, MARKETPLACE_SOURCES, scope, signal)),
    ...(await listAll<Skill>(session, SKILLS, scope, signal)),
  ];
  try {
    return seenIn(await lists({}));
  } catch (error) {
    signal.throwIfAborted();
    if ((error as { code?: unknown }).code !== 403) return { ready: 0, reasons: new Map() };
    return seenIn(await lists({ namespace: session.namespace }).catch(() => []));
  }
}

/** Reasons of the operator's conditions that begin so, as findings of a check. Pure. */
export const complaints = (check: string, family: RegExp, seen: SeenByOperator): Finding[] =>
  [...seen.reasons]
    .filter(([reason]) => family.test(reason))
    .map(([reason, { count: n, message }]) =>
      fail(
        check,
        `the operator says ${reason} of ${count(n, 'object')}: ${message}`,
        `docs/errors.md explains ${reason}`,
      ),
    );

/** What remains of the reasons: what concerns the objects themselves is a matter of trace. */
const OURS = /^(Store|Registry|Engine)/;
const CLUSTER =
  /^(Forbidden|ApiUnavailable|ApplyRejected|InternalError|Build(Config|Pod|Unsched|ImagePull)|TemplateNot|BuildNot)/;

/** How many Skills are Ready, and what else the operator complains of. */
export const skills: Check = {
  name: 'Skills',
  run: async ({ seen }) => {
    const bad = [...seen.reasons].filter(([reason]) => !OURS.test(reason));
    const found = complaints('Skills', CLUSTER, seen);
    const rest = bad.filter(([reason]) => !CLUSTER.test(reason)).reduce((sum, [, { count: n }]) => sum + n, 0);
    if (rest > 0)
      found.push(
        warn(
          'Skills',
          `${count(rest, 'object')} not Ready for reasons of content or source`,
          'skillctl get -A; skillctl trace SKILL',
        ),
      );
    return found.length > 0 ? found : [ok('Skills', `${seen.ready} Ready, none waits for anything`)];
  },
};
