import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { withDeadline } from '../../base/deadline.ts';
import { messageOf, stalled } from '../../base/errors.ts';
import { hasCode } from '../../kube/errors.ts';
import { findHome, type Home, type HomeFlags, parseSettings } from '../cluster/home.ts';
import type { Around } from '../cluster/requests.ts';
import { type ClusterFlags, inCluster, type Session } from '../cluster/session.ts';
import { EXIT, type ExitCode } from '../io.ts';
import { Progress } from '../progress.ts';
import { json, type Paint, painter, printable } from '../terminal.ts';
import { apiServer, crds } from './api.ts';
import { kubelet, podSecurity } from './builds.ts';
import type { Bench, Check, Finding } from './finding.ts';
import { fail, warn } from './finding.ts';
import { blocks, deployment, lease, ledger } from './operator.ts';
import { engines, registry, store } from './outside.ts';
import { operators, yours } from './rights.ts';
import { seenByOperator, skills } from './seen.ts';

export interface DoctorFlags extends ClusterFlags, HomeFlags {
  /** Settings file of an operator that runs outside the cluster. */
  config?: string;
  output: 'human' | 'json';
}

/** In the order in which they are printed; the Lease takes longest. */
const CHECKS: readonly Check[] = [
  crds,
  yours,
  operators,
  deployment,
  lease,
  store,
  registry,
  engines,
  podSecurity,
  kubelet,
  blocks,
  ledger,
  skills,
];
const DEADLINE_MS = 45_000;

/** Runs one check; what it throws is its finding. */
async function checked(check: Check, bench: Bench, signal: AbortSignal): Promise<Finding[]> {
  try {
    return await withDeadline(signal, DEADLINE_MS, (inner) => check.run(bench, inner));
  } catch (error) {
    signal.throwIfAborted();
    const message = messageOf(error);
    if (hasCode(error, 403))
      return [warn(check.name, `not looked at: ${message}`, 'run this as an administrator of the cluster')];
    return [fail(check.name, message, 'see docs/guides/troubleshooting.md')];
  }
}

const STYLES = { ok: 'green', warn: 'yellow', FAIL: 'red' } as const;
const NAME_WIDTH = 16;

/** The lines of the findings. Pure. */
export function doctorText(findings: readonly Finding[], paint: Paint): string {
  const lines = findings.flatMap(({ check, level, message, fix }) => [
    `${paint(STYLES[level], level.padEnd(4))}  ${check.padEnd(NAME_WIDTH)} ${printable(message)}`,
    ...(fix === undefined ? [] : [`${' '.repeat(NAME_WIDTH + 7)}${paint('dim', 'fix:')} ${printable(fix)}`]),
  ]);
  const of = (level: Finding['level']) => findings.filter((one) => one.level === level).length;
  return `${[...lines, '', `${of('ok')} ok, ${of('warn')} warn, ${of('FAIL')} FAIL`].join('\n')}\n`;
}

/** Settings of the flag `--config` in place of those of the cluster. */
async function withConfig(home: Home, file: string | undefined, cwd: string): Promise<Home> {
  if (file === undefined) return home;
  const text = await readFile(resolve(cwd, file), 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw stalled(
      'PathNotFound',
      `cannot read ${file} (${error.code ?? 'unknown error'}); give the operator's settings file`,
    );
  });
  const settings = await parseSettings(text);
  if (!settings)
    throw stalled(
      'InvalidSpec',
      `${file} is no settings file; it must be a YAML mapping such as docs/guides/configuration.md shows`,
    );
  return { ...home, settings, settingsFrom: file, buildNamespace: settings.build?.namespace ?? home.buildNamespace };
}

async function examine(session: Session, flags: DoctorFlags, around: Around): Promise<Finding[]> {
  const { io, clock, signal } = around;
  const progress = new Progress(io, clock);
  try {
    // Without an API server nothing else can be looked at.
    const reach = { session, clock, seen: { ready: 0, reasons: new Map() }, home: {} as Home };
    const server = await checked(apiServer, reach, signal);
    if (server.some(({ level }) => level === 'FAIL')) return server;
    const home = await withConfig(await findHome(session, flags, signal), flags.config, io.cwd);
    const bench = { session, clock, home, seen: await seenByOperator(session, signal) };
    let left = CHECKS.length;
    if (io.live) progress.say(`${left} checks`);
    const found = await Promise.all(
      CHECKS.map(async (check) => {
        const findings = await checked(check, bench, signal);
        left--;
        if (io.live) progress.say(`${left} checks left`);
        return findings;
      }),
    );
    return [...server, ...found.flat()];
  } finally {
    progress.end();
  }
}

/** `skillctl doctor`: exit code 1 when a check says FAIL. */
export const doctor = (flags: DoctorFlags, around: Around): Promise<ExitCode> =>
  inCluster(flags, around.clock, async (session) => {
    const findings = await examine(session, flags, around);
    const failed = findings.some(({ level }) => level === 'FAIL');
    const { io } = around;
    io.out(
      flags.output === 'json' ? `${json({ ok: !failed, findings }, 2)}\n` : doctorText(findings, painter(io.colors)),
    );
    return failed ? EXIT.no : EXIT.ok;
  });
