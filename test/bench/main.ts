/** `make bench`: times and counts of the operator on real servers of this machine, against the targets of the design. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startCluster } from '../cluster/start.ts';
import { installCrds } from '../support/operator-account.ts';
import { AuditTail } from './audit-tail.ts';
import { warmUp } from './floor.ts';
import { format, HEADER, type Row, summary, verdict } from './rows.ts';
import { runScenarios, SCENARIOS, type ScenarioName } from './scenarios/index.ts';

const DOCKERFILE = fileURLToPath(new URL('../../Dockerfile', import.meta.url));
const BUILD = fileURLToPath(new URL('../../scripts/build.ts', import.meta.url));

const USAGE = `Usage: make bench, or node test/bench/main.ts [options]

  --only NAME     run this scenario alone; may be given more than once
  --large         also run the 10,000 skills
  --json FILE     write the rows to FILE as well
  --profile DIR   write CPU profiles of the operator to DIR and print where its time went (slows it down)
  --list          print the scenarios
`;

interface Options {
  wants: (name: ScenarioName) => boolean;
  json: string | undefined;
  profileDir: string | undefined;
}

const say = (text: string): void => {
  process.stderr.write(`[bench] ${text}\n`);
};

function list(): void {
  for (const [name, what] of Object.entries(SCENARIOS)) console.log(`${name.padEnd(10)} ${what}`);
}

/** undefined: the answer was printed, nothing is to be run. */
function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      large: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
      json: { type: 'string' },
      profile: { type: 'string' },
    },
  });
  if (values.help) console.log(USAGE);
  if (values.list) list();
  if (values.help || values.list) return undefined;
  const unknown = values.only.filter((name) => !(name in SCENARIOS));
  if (unknown.length > 0) {
    throw new Error(`there is no scenario ${unknown.join(', ')}; --list prints them`);
  }
  const chosen = new Set(values.only.length > 0 ? values.only : Object.keys(SCENARIOS));
  if (values.only.length === 0) chosen.delete('large');
  if (values.large) chosen.add('large');
  const profileDir = values.profile === undefined ? undefined : resolve(values.profile);
  return { wants: (name) => chosen.has(name), json: values.json, profileDir };
}

/** Bundles the operator as the image does; returns the path of its program. */
async function bundle(dir: string): Promise<string> {
  const child = spawn(process.execPath, [BUILD, '--outdir', dir, 'main', 'worker'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the bundle could not be built: scripts/build.ts ended with ${code}`);
  return join(dir, 'main.js');
}

/** The operator runs with what its image sets, which is what users get. */
function nodeOptionsOfImage(): string {
  const found = /^ENV .*\bNODE_OPTIONS=(\S+)/m.exec(readFileSync(DOCKERFILE, 'utf8'));
  if (!found?.[1]) throw new Error('the Dockerfile sets no NODE_OPTIONS');
  return found[1];
}

const machine = () => ({
  cpus: cpus().length,
  model: cpus()[0]?.model ?? 'unknown',
  memoryMiB: Math.round(totalmem() / 1024 / 1024),
  load: loadavg().map((value) => Number(value.toFixed(2))),
  node: process.version,
});

/** Rejects when `signal` aborts, at once when it has. */
async function untilAborted(signal: AbortSignal): Promise<never> {
  signal.throwIfAborted();
  await once(signal, 'abort');
  throw signal.reason;
}

/** Runs the scenarios on a cluster of their own; each row is printed when it is known. Ends what it started, however it ends. */
async function measure(program: string, options: Options, signal: AbortSignal): Promise<Row[]> {
  const rows: Row[] = [];
  const running = new Set<AsyncDisposable>();
  const emit = (row: Row) => {
    rows.push(row);
    console.log(format(row));
  };
  say('starting API server, S3 and Git');
  // An API server of its own: its audit log is what counts and times writes.
  const cluster = await startCluster({ say, kubeconfig: '', signal });
  try {
    const { info } = cluster;
    if (info.auditLog === undefined) throw new Error('the API server has no audit log to count in');
    await installCrds(info);
    using audit = new AuditTail(info.auditLog);
    const { profileDir } = options;
    const bench = { info, audit, program, nodeOptions: nodeOptionsOfImage(), profileDir, emit, say, running };
    say('warming the servers up');
    await warmUp(bench);
    console.log(HEADER);
    await Promise.race([runScenarios(bench, options.wants), untilAborted(signal)]);
    return rows;
  } finally {
    await Promise.allSettled([...running].map((stage) => stage[Symbol.asyncDispose]()));
    await cluster.stop();
  }
}

async function run(options: Options): Promise<void> {
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort(new Error('stopped')));
  const dir = mkdtempSync(join(tmpdir(), 'skill-operator-bench-'));
  const began = machine();
  let rows: Row[];
  try {
    if (options.profileDir !== undefined) mkdirSync(options.profileDir, { recursive: true });
    say('building the bundle');
    rows = await measure(await bundle(dir), options, stopping.signal);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  const ended = machine();
  console.log(`\n${summary(rows)}; ${began.cpus} CPUs, load ${began.load[0]} before and ${ended.load[0]} after`);
  if (options.json === undefined) return;
  const judged = rows.map((row) => ({ ...row, verdict: verdict(row) }));
  writeFileSync(options.json, `${JSON.stringify({ machine: began, loadAfter: ended.load, rows: judged }, null, 2)}\n`);
}

try {
  const options = readOptions();
  if (options) await run(options);
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
// A scenario that was cut short may hold sockets and timers.
process.exit();
