import { CONFIG_MAPS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import { stalled } from '../../base/errors.ts';
import { hasCode } from '../../kube/errors.ts';
import { findHome, type Home, type HomeFlags } from '../cluster/home.ts';
import type { Leader } from '../cluster/lease.ts';
import { listAll } from '../cluster/objects.ts';
import type { Around } from '../cluster/requests.ts';
import { type ClusterFlags, inCluster, type Session } from '../cluster/session.ts';
import { EXIT, type ExitCode } from '../io.ts';
import { json, painter } from '../terminal.ts';
import { externalOf, isHeld, nextCommands, remainingOf } from './plan.ts';
import { deleteAll, inventoryOf, leader, orphanAll, type Removal, release, waitUntilGone } from './remove.ts';
import { leaderText, planText, remainingText, resultText, type UninstallResult } from './text.ts';

export interface UninstallFlags extends ClusterFlags, HomeFlags {
  yes?: boolean;
  orphan?: boolean;
  force?: boolean;
  /** Milliseconds. */
  timeout: number;
  output: 'human' | 'json';
}

/** Name of the Helm release, as the chart labels its objects. */
const releaseOf = ({ deployment }: Home): string =>
  deployment?.metadata.annotations?.['meta.helm.sh/release-name'] ??
  deployment?.metadata.labels?.['app.kubernetes.io/instance'] ??
  'skill-operator';

async function ledgerSize({ session, home, signal }: Removal): Promise<number> {
  const scope = { namespace: home, labelSelector: 'skills.tfrobot.io/ledger=true' };
  try {
    return (await listAll(session, CONFIG_MAPS, scope, signal)).length;
  } catch (error) {
    if (hasCode(error, 403)) return 0;
    throw error;
  }
}

/** Whether namespaces outside the scope hold anything; false where they may not be seen. */
async function moreElsewhere(removal: Removal, flags: UninstallFlags): Promise<boolean> {
  if (flags.namespace === undefined) return false;
  try {
    const all = await inventoryOf({ ...removal, scope: {} });
    return [...all.sources, ...all.skills].some(({ metadata }) => metadata.namespace !== flags.namespace);
  } catch (error) {
    if (hasCode(error, 403)) return true;
    throw error;
  }
}

/** A person says yes to what cannot be undone; without a terminal the two flags have said so. */
async function confirmed({ io, signal }: Around, left: number): Promise<boolean> {
  if (!io.ask) return true;
  const answer = await io.ask(
    `Take the finalizer off ${left} Skill${left === 1 ? '' : 's'} and leave the above behind? Type "force": `,
    signal,
  );
  return answer.trim() === 'force';
}

/** Ends the Skills that did not go, where that was asked for; resolves with those that are still there. */
async function forceOut(removal: Removal, skills: Skill[], flags: UninstallFlags) {
  const held = skills.filter(isHeld);
  if (!flags.force || held.length === 0) return { left: skills, leaked: [] };
  if (!(await confirmed(removal, held.length))) return { left: skills, leaked: [] };
  await release(removal, held);
  const { skills: left } = await waitUntilGone(removal, 0, undefined);
  const gone = held.filter(({ metadata }) => !left.some((one) => one.metadata.uid === metadata.uid));
  return { left, leaked: externalOf(gone) };
}

async function carryOut(
  removal: Removal,
  known: Leader | undefined,
  flags: UninstallFlags,
): Promise<Pick<UninstallResult, 'remaining' | 'leaked'>> {
  const { io } = removal;
  if (known?.alive !== true) io.err(`${leaderText(known)}\n`);
  if (flags.orphan) await orphanAll(removal, known?.alive ?? true);
  await deleteAll(removal);
  const { skills, why } = await waitUntilGone(removal, flags.timeout, known);
  if (skills.length === 0) return { remaining: [], leaked: [] };
  // What is there now: a status may have changed since the inventory was taken.
  io.err(remainingText(remainingOf(skills), externalOf(skills), why));
  const { left, leaked } = await forceOut(removal, skills, flags);
  if (left.length > 0) {
    io.err(
      'Start the operator and run this again: it removes images and templates, at the latest after ten minutes it writes down what it could not remove. To leave them behind: --force\n',
    );
  }
  return { remaining: remainingOf(left), leaked };
}

async function run(session: Session, flags: UninstallFlags, around: Around): Promise<ExitCode> {
  const { io, signal } = around;
  const home = await findHome(session, flags, signal);
  const scope = flags.namespace === undefined ? {} : { namespace: flags.namespace };
  const removal: Removal = { ...around, session, scope, home: home.namespace };
  const inventory = await inventoryOf(removal);
  const known = await leader(removal);
  const more = await moreElsewhere(removal, flags);
  const next = nextCommands({ release: releaseOf(home), namespace: home.namespace, more });
  const external = externalOf(inventory.skills);
  const paint = painter(io.colors);
  const orphaned = flags.orphan === true;
  const empty = { dryRun: true, remaining: [], leaked: [], ledger: 0, orphaned, external, next };
  const counts = { sources: inventory.sources.length, skills: inventory.skills.length };
  const nothing = counts.sources + counts.skills === 0;
  if (!flags.yes || nothing) {
    const again = `skillctl uninstall --yes${flags.namespace ? ` -n ${flags.namespace}` : ''}${orphaned ? ' --orphan' : ''}`;
    const text = () => planText(inventory, known, { orphan: orphaned, next, paint, again });
    io.out(flags.output === 'json' ? `${json({ ...counts, ...empty, dryRun: !flags.yes }, 2)}\n` : text());
    return EXIT.ok;
  }
  const done = await carryOut(removal, known, flags);
  const result: UninstallResult = { ...empty, ...counts, dryRun: false, ...done, ledger: await ledgerSize(removal) };
  io.out(flags.output === 'json' ? `${json(result, 2)}\n` : resultText(result, paint));
  return result.remaining.length > 0 ? EXIT.no : EXIT.ok;
}

/** `skillctl uninstall`: deletes sources and Skills in the order that leaves nothing behind; never hangs. Exit code 1: Skills remain. */
export const uninstall = (flags: UninstallFlags, around: Around): Promise<ExitCode> => {
  if (flags.force && !flags.yes)
    throw stalled(
      'InvalidSpec',
      '--force takes effect with --yes only; run skillctl uninstall first to see what would be done',
    );
  return inCluster(flags, around.clock, (session) => run(session, flags, around));
};
