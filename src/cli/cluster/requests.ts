import { ANNOTATIONS } from '../../api/labels.ts';
import { SKILLS } from '../../api/resources.ts';
import type { Skill } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import { stalled } from '../../base/errors.ts';
import { EXIT, type ExitCode, type Io } from '../io.ts';
import { count, json, painter, printable } from '../terminal.ts';
import { findTarget, listAll, RESOURCES, requireSkill, skillsOf, type Target } from './objects.ts';
import { shortRevision } from './rows.ts';
import { type ClusterFlags, FIELD_MANAGER, inCluster, type Session } from './session.ts';
import { type Asked, hasOwnImage, type Standing, skillsStanding, standingOf } from './settled.ts';
import { STYLES, type State, stateOf } from './state.ts';
import { type Look, reread, waitFor } from './wait.ts';

export interface RequestFlags extends ClusterFlags {
  wait?: boolean;
  /** `reconcile` of a source: wait for its Skills too. */
  withSkills?: boolean;
  /** Milliseconds. */
  timeout: number;
  output: 'human' | 'json';
}

/** What a command needs beside its arguments. */
export interface Around {
  io: Io;
  clock: Clock;
  signal: AbortSignal;
}

/** Outcome of a request; the shape of the JSON output. */
interface Outcome extends Partial<State> {
  kind: 'MarketplaceSource' | 'Skill';
  namespace: string;
  name: string;
  /** Past participle: `requested`, `reconciled`, `suspended`. */
  done: string;
  revision?: string;
  version?: string;
  /** Skills that are not Ready, with `--with-skills`. */
  notReady?: ({ name: string } & State)[];
}

const nameOf = ({ kind, object }: Target): Pick<Outcome, 'kind' | 'namespace' | 'name'> => ({
  kind: RESOURCES[kind].kind as Outcome['kind'],
  namespace: object.metadata.namespace ?? '',
  name: object.metadata.name,
});

function print(outcome: Outcome, output: RequestFlags['output'], io: Io): void {
  if (output === 'json') {
    const { word, ...rest } = outcome;
    io.out(`${json({ ...rest, ...(word === undefined ? {} : { state: word }) }, 2)}\n`);
    return;
  }
  const paint = painter(io.colors);
  const { kind, name, namespace, done, word, reason, message, revision, version } = outcome;
  const at = revision ? ` at ${shortRevision(revision)}` : version ? `, serves ${version}` : '';
  const lines = [`${kind} ${paint('bold', printable(name))} in ${namespace} ${done}${printable(at)}`];
  if (word) {
    const why = reason && reason !== word && word !== 'Ready' ? ` (${printable(reason)})` : '';
    lines.push(`  ${paint(STYLES[word], word)}${why}${message ? `: ${printable(message)}` : ''}`);
  }
  for (const skill of outcome.notReady ?? [])
    lines.push(`  ${printable(skill.name)} ${paint(STYLES[skill.word], skill.word)} ${printable(skill.message)}`);
  io.out(`${lines.join('\n')}\n`);
}

async function annotate(session: Session, target: Target, { by, value }: Asked, signal: AbortSignal): Promise<Target> {
  const { namespace = '', name, uid } = target.object.metadata;
  const body = { metadata: { uid, annotations: { [ANNOTATIONS[by]]: value } } };
  const patch = { kind: 'merge', body, fieldManager: FIELD_MANAGER } as const;
  const object = await session.api.patch<Target['object']>(RESOURCES[target.kind], namespace, name, patch, signal);
  return { kind: target.kind, object } as Target;
}

/** Waits until the operator has answered and knows how it ended. */
async function answerTo(
  session: Session,
  target: Target,
  asked: Asked,
  flags: RequestFlags,
  { io, clock, signal }: Around,
): Promise<{ target: Target; standing: Standing }> {
  const { name } = target.object.metadata;
  const look = async (): Promise<Look<{ target: Target; standing: Standing }>> => {
    const now = await reread(session, target, signal);
    const standing = standingOf(now, asked);
    if (standing.done) return { done: true, value: { target: now, standing } };
    const { word, message } = standing.state;
    const text = standing.answered ? `${name}: ${word} ${message}` : `${name}: the operator has not answered yet`;
    return { done: false, text, answered: standing.answered };
  };
  const what = asked.by === 'rebuild' ? `the rebuild of ${name}` : `the pass over ${name}`;
  return waitFor(look, { io, clock, timeoutMs: flags.timeout, what }, signal);
}

/** Waits until no Skill of the source is on its way any more; resolves with those that need a change. */
async function badSkills(session: Session, target: Target, flags: RequestFlags, { io, clock, signal }: Around) {
  if (target.kind !== 'source') return [];
  const look = async (): Promise<Look<Skill[]>> => {
    const skills = await listAll<Skill>(session, SKILLS, skillsOf(target.object), signal);
    const { moving, bad } = skillsStanding(skills);
    const [first] = moving;
    if (!first) return { done: true, value: bad };
    const { word, message } = stateOf(first);
    const text = `${count(moving.length, 'Skill')} not settled, such as ${first.metadata.name}: ${word} ${message}`;
    return { done: false, text, answered: word !== 'Pending' };
  };
  const what = `waiting for the Skills of ${target.object.metadata.name}`;
  const bad = await waitFor(look, { io, clock, timeoutMs: flags.timeout, what }, signal);
  return bad.map((skill) => ({ name: skill.metadata.name, ...stateOf(skill) }));
}

const detail = ({ kind, object }: Target): Partial<Outcome> =>
  kind === 'source'
    ? { ...(object.status?.revision === undefined ? {} : { revision: object.status.revision }) }
    : { ...(object.status?.served === undefined ? {} : { version: object.status.served.version }) };

async function request(
  session: Session,
  target: Target,
  by: Asked['by'],
  flags: RequestFlags,
  around: Around,
): Promise<ExitCode> {
  const { io, clock, signal } = around;
  const { name, namespace = '' } = target.object.metadata;
  if (target.object.spec.suspend) {
    const first = `skillctl resume ${target.kind} ${name} -n ${namespace}`;
    throw stalled(
      'Suspended',
      `${RESOURCES[target.kind].kind} ${name} is suspended, so nothing will happen; first: ${first}`,
    );
  }
  const asked: Asked = { by, value: new Date(clock.now()).toISOString() };
  const sent = await annotate(session, target, asked, signal);
  if (!flags.wait && !flags.withSkills) {
    print(
      { ...nameOf(sent), done: by === 'rebuild' ? 'will be built again' : 'will be looked at now' },
      flags.output,
      io,
    );
    return EXIT.ok;
  }
  const { target: now, standing } = await answerTo(session, sent, asked, flags, around);
  const ready = standing.state.word === 'Ready';
  const notReady = ready && flags.withSkills ? await badSkills(session, now, flags, around) : [];
  const done = by === 'requestedAt' ? 'was looked at' : ready ? 'was rebuilt' : 'was not rebuilt';
  const outcome: Outcome = { ...nameOf(now), done, ...standing.state, ...detail(now) };
  print(notReady.length > 0 ? { ...outcome, notReady } : outcome, flags.output, io);
  return ready && notReady.length === 0 ? EXIT.ok : EXIT.no;
}

/** `skillctl reconcile`: asks for a pass now and, with `--wait`, tells how it ended. */
export const reconcile = (words: readonly string[], flags: RequestFlags, around: Around): Promise<ExitCode> =>
  inCluster(flags, around.clock, async (session) => {
    const target = await findTarget(session, words, around.signal);
    return request(session, target, 'requestedAt', flags, around);
  });

/** `skillctl rebuild`: asks for a new image of the served version. */
export const rebuild = (name: string, flags: RequestFlags, around: Around): Promise<ExitCode> =>
  inCluster(flags, around.clock, async (session) => {
    const skill = await requireSkill(session, name, around.signal);
    if (!hasOwnImage(skill)) {
      const runtime = skill.status?.runtime ?? 'none yet';
      throw stalled(
        'NotRequired',
        `Skill ${skill.metadata.name} has no image of its own (runtime: ${runtime}), so there is nothing to build`,
      );
    }
    return request(session, { kind: 'skill', object: skill }, 'rebuild', flags, around);
  });

/** `skillctl suspend` and `skillctl resume`: writes spec.suspend, or takes it away. */
export const setSuspend = (
  words: readonly string[],
  suspend: boolean,
  flags: ClusterFlags & Pick<RequestFlags, 'output'>,
  { io, clock, signal }: Around,
): Promise<ExitCode> =>
  inCluster(flags, clock, async (session) => {
    const target = await findTarget(session, words, signal);
    const { kind, object } = target;
    const { namespace = '', name, uid } = object.metadata;
    const already = (object.spec.suspend ?? false) === suspend;
    if (!already) {
      // Absent rather than false: a manifest in Git does not have the field either.
      const body = { metadata: { uid }, spec: { suspend: suspend ? true : null } };
      const patch = { kind: 'merge', body, fieldManager: FIELD_MANAGER } as const;
      await session.api.patch(RESOURCES[kind], namespace, name, patch, signal);
    }
    const word = suspend ? 'suspended' : already ? 'not suspended' : 'resumed';
    print({ ...nameOf(target), done: already ? `is ${word} already` : `is ${word}` }, flags.output, io);
    return EXIT.ok;
  });
