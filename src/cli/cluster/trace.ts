import type { MarketplaceSource } from '../../api/marketplacesource.ts';
import { MARKETPLACE_SOURCES } from '../../api/resources.ts';
import type { Skill, StatusFinding } from '../../api/skill.ts';
import type { Clock } from '../../base/clock.ts';
import { stalled } from '../../base/errors.ts';
import { EXIT, type ExitCode, type Io } from '../io.ts';
import { json, type Paint, painter, printable, type Style } from '../terminal.ts';
import { findSkill, listAll } from './objects.ts';
import { type ClusterFlags, inCluster, type Session } from './session.ts';
import type { Step, Trace } from './steps.ts';
import { traceMissing, traceSkill } from './tracing.ts';

export interface TraceFlags extends ClusterFlags {
  output: 'human' | 'json';
}

const MARKS: Readonly<Record<Step['state'], { mark: string; style: Style }>> = {
  done: { mark: '✓', style: 'green' },
  stopped: { mark: '✗', style: 'red' },
  going: { mark: '…', style: 'cyan' },
  pending: { mark: '·', style: 'dim' },
};

const place = ({ path, line, column }: StatusFinding): string =>
  `${path || '.'}${line === undefined ? '' : `:${line}${column === undefined ? '' : `:${column}`}`}`;

/** The lines of a trace. Pure. */
export function traceText(trace: Trace, paint: Paint): string {
  const lines = [
    `${paint('bold', printable(trace.skill))} in ${trace.namespace}${trace.exists ? '' : ' (no Skill object)'}`,
  ];
  for (const { step, state, detail } of trace.steps) {
    const { mark, style } = MARKS[state];
    lines.push(
      `  ${paint(style, mark)} ${step.padEnd(9)} ${state === 'pending' ? paint('dim', printable(detail)) : printable(detail)}`,
    );
  }
  if (trace.stopped) {
    const { step, reason, message } = trace.stopped;
    lines.push('', `${paint('red', 'Stopped')} at ${step}: ${paint('bold', printable(reason))}`);
    // The first of the violations is in the message.
    if (!trace.violations) lines.push(`  ${printable(message)}`);
  } else lines.push('', trace.ready ? paint('green', 'Ready') : paint('cyan', 'On its way'));
  for (const finding of trace.violations ?? []) {
    lines.push(`  ${printable(place(finding))} ${finding.code}  ${printable(finding.message)}`);
    if (finding.hint) lines.push(`    ${paint('dim', 'fix:')} ${printable(finding.hint)}`);
  }
  if (trace.next.length > 0) lines.push('Next:', ...trace.next.map((next) => `  ${paint('cyan', printable(next))}`));
  return `${lines.join('\n')}\n`;
}

async function sourceOf(session: Session, skill: Skill, signal: AbortSignal): Promise<MarketplaceSource | undefined> {
  const name = skill.spec.source.marketplaceRef?.name;
  if (name === undefined) return undefined;
  return session.api.get<MarketplaceSource>(MARKETPLACE_SOURCES, session.namespace, name, signal);
}

async function follow(session: Session, wanted: string, signal: AbortSignal): Promise<Trace> {
  const { namespace } = session;
  const skill = await findSkill(session, wanted, signal);
  if (skill) return traceSkill(skill, await sourceOf(session, skill, signal));
  const sources = await listAll<MarketplaceSource>(session, MARKETPLACE_SOURCES, { namespace }, signal);
  const missing = traceMissing(wanted, namespace, sources);
  if (missing) return missing;
  if (sources.length === 0)
    throw stalled(
      'SourceNotFound',
      `namespace ${namespace} has no MarketplaceSource; apply one, or choose another namespace with -n`,
    );
  throw stalled(
    'SourceNotFound',
    `no Skill and no problem of a source is called "${wanted}" in namespace ${namespace}, and every source is well; is it pushed, and do include and exclude of the source let it through?`,
  );
}

/** `skillctl trace`: exit code 0 when what the source has is what is served. */
export async function trace(
  wanted: string,
  flags: TraceFlags,
  io: Io,
  clock: Clock,
  signal: AbortSignal,
): Promise<ExitCode> {
  const found = await inCluster(flags, clock, (session) => follow(session, wanted, signal));
  io.out(flags.output === 'json' ? `${json(found, 2)}\n` : traceText(found, painter(io.colors)));
  return found.ready ? EXIT.ok : EXIT.no;
}
