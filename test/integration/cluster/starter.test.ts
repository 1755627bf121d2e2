import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { isAlive, type ProcessId } from '../../cluster/procfs.ts';
import { baseDir, ownerOf, recordedProcesses } from '../../cluster/run-dir.ts';
import { type Cluster, startCluster } from '../../cluster/start.ts';
import type { ClusterInfo } from '../../support/cluster-info.ts';
import { eventually } from '../../support/eventually.ts';
import { K8s } from '../../support/k8s.ts';
import { makeBucket, readObject, s3Client } from '../../support/s3.ts';

const HOLDER = fileURLToPath(new URL('../../support/hold-cluster.ts', import.meta.url));
const shared = inject('cluster');

interface Held {
  child: ChildProcess;
  info: ClusterInfo;
  ownerPid: number;
  said: string[];
}

/** Pids of all processes whose command line names the run directory. */
function processesOf(runDir: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(runDir);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** Pid of the parent of a process; undefined when it has ended. */
function parentOf(pid: number | undefined): number | undefined {
  try {
    const parent = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return parent === undefined ? undefined : Number(parent);
  } catch {
    return undefined;
  }
}

async function expectNothingLeft(runDir: string, recorded: ProcessId[]): Promise<void> {
  await eventually(() => !existsSync(runDir), { what: `the end of ${runDir}` });
  expect(recorded.filter(isAlive)).toEqual([]);
  await eventually(() => processesOf(runDir).length === 0, { what: 'the end of every process of the run' });
}

const reservedPorts = (ownerPid: number): string[] => {
  const dir = `${baseDir()}/ports`;
  return readdirSync(dir).filter((port) => {
    try {
      return readFileSync(`${dir}/${port}`, 'utf8').startsWith(`${ownerPid} `);
    } catch {
      return false;
    }
  });
};

// With a cluster that the person gave there may be nothing to build one from.
describe.skipIf(shared.auditLog === undefined)('startCluster', () => {
  let one: Cluster;
  let two: Cluster;
  const children: ChildProcess[] = [];
  /** Starts a cluster in another process, with its run directories in a folder of choice. */
  const hold = async (folder: string): Promise<Held> => {
    const env = { ...process.env, TMPDIR: folder };
    const child = spawn(process.execPath, [HOLDER], { stdio: ['pipe', 'pipe', 'inherit'], env });
    children.push(child);
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    return { ...(JSON.parse(line) as Omit<Held, 'child'>), child };
  };
  beforeAll(async () => {
    const both = await Promise.all([startCluster({ kubeconfig: '' }), startCluster({ kubeconfig: '' })]);
    [one, two] = both;
  });
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    await Promise.all([one?.stop(), two?.stop()]);
  });

  test('runs two clusters side by side that know nothing of each other', async () => {
    await using first = new K8s(one.info.kubeconfig);
    await using second = new K8s(two.info.kubeconfig);
    const name = await first.createNamespace('mine');
    const ref = { apiVersion: 'v1', kind: 'Namespace', name };
    expect(await first.get(ref)).toBeDefined();
    expect(await second.get(ref)).toBeUndefined();
    const bucket = await makeBucket(one.info.s3);
    expect(await s3Client(two.info.s3).bucketExists(bucket)).toBe(false);
    expect(one.info.git.root).not.toBe(two.info.git.root);
  });

  test('restarts a component on the same port with its data', async () => {
    const bucket = await makeBucket(one.info.s3);
    await s3Client(one.info.s3).putObject(bucket, 'kept', Buffer.from('x'));
    await using k8s = new K8s(one.info.kubeconfig);
    const name = await k8s.createNamespace('kept');
    await Promise.all([one.restart('s3'), one.restart('kube-apiserver')]);
    expect((await readObject(one.info.s3, bucket, 'kept')).toString()).toBe('x');
    await using again = new K8s(one.info.kubeconfig);
    expect(await again.get({ apiVersion: 'v1', kind: 'Namespace', name })).toBeDefined();
  });

  test('says which components there are when asked for another one', async () => {
    await expect(one.restart('nonsense')).rejects.toThrow(/no component nonsense; there are etcd, kube-apiserver/);
  });

  test('leaves no process, directory or reserved port when it is stopped', async () => {
    const { runDir } = one.info;
    const recorded = recordedProcesses(runDir);
    expect(recorded.length).toBeGreaterThanOrEqual(5);
    expect(reservedPorts(one.ownerPid).length).toBeGreaterThan(5);
    await one.stop();
    await expectNothingLeft(runDir, recorded);
    expect(reservedPorts(one.ownerPid)).toEqual([]);
    await one.stop();
  });

  test('is swept by the next start when the process that owns it was killed; one that lives is left alone', async () => {
    // A folder of its own, so that no other start on this machine sweeps first.
    const folder = mkdtempSync(join(tmpdir(), 'skill-operator-sweep-'));
    try {
      const [killed, living] = await Promise.all([hold(folder), hold(folder)]);
      const recorded = recordedProcesses(killed.info.runDir);
      process.kill(killed.ownerPid, 'SIGKILL');
      await eventually(() => !existsSync(`/proc/${killed.ownerPid}`), { what: 'the end of the owner' });
      expect(recorded.length).toBeGreaterThanOrEqual(5);
      expect(recorded.filter(isAlive)).toEqual(recorded);

      const next = await hold(folder);
      expect(next.said).toContain('removed what 1 killed run(s) left behind');
      await expectNothingLeft(killed.info.runDir, recorded);
      expect(recordedProcesses(living.info.runDir).filter(isAlive)).toHaveLength(recorded.length);

      const others = [living, next].map(({ info }) => ({ dir: info.runDir, recorded: recordedProcesses(info.runDir) }));
      for (const { child } of [killed, living, next]) child.kill('SIGKILL');
      for (const other of others) await expectNothingLeft(other.dir, other.recorded);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 180_000);

  test('ends by itself when the process that started it was killed', async () => {
    const { child, info, ownerPid } = await hold(tmpdir());
    const recorded = recordedProcesses(info.runDir);
    expect(recorded.length).toBeGreaterThanOrEqual(5);
    child.kill('SIGKILL');
    await expectNothingLeft(info.runDir, recorded);
    await eventually(() => !existsSync(`/proc/${ownerPid}`), { what: 'the end of the owner' });
  });

  test('stops at once, leaving nothing, when it is aborted on the way up', async () => {
    const before = new Set(readdirSync(baseDir()));
    const stop = new AbortController();
    const starting = startCluster({ kubeconfig: '', signal: stop.signal });
    const outcome = expect(starting).rejects.toThrow('enough');
    // Others may start clusters at the same time; ours is the one whose owner is a child of this process.
    const name = await eventually(
      () => readdirSync(baseDir()).find((entry) => !before.has(entry) && parentOf(ownerOf(entry)?.pid) === process.pid),
      { what: 'a run directory' },
    );
    stop.abort(new Error('enough'));
    await outcome;
    await expectNothingLeft(join(baseDir(), name), []);
  });

  test('says what to do when the given cluster does not answer', async () => {
    const yaml = readFileSync(shared.kubeconfig, 'utf8');
    const file = `${shared.runDir}/kubeconfig-of-nobody`;
    writeFileSync(file, yaml.replace(/127\.0\.0\.1:\d+/, '127.0.0.1:9'));
    await expect(startCluster({ kubeconfig: file })).rejects.toThrow(/does not answer.*Unset KUBECONFIG/s);
  });

  test('uses the programs of a given folder, and does without a controller manager that is not among them', async () => {
    const assets = mkdtempSync(join(shared.runDir, 'assets-'));
    const own = new Set(['etcd', 'kube-apiserver']);
    for (const name of own) symlinkSync(realpathSync(join(shared.runDir, 'bin', name)), join(assets, name));
    const said: string[] = [];
    const cluster = await startCluster({ kubeconfig: '', assets, say: (line) => said.push(line) });
    try {
      expect(said).toContain(
        'KUBEBUILDER_ASSETS has no kube-controller-manager: namespaces stay Terminating and owned objects stay',
      );
      expect(readdirSync(join(cluster.info.runDir, 'pids')).sort()).toEqual([...own, 's3', 'sshd']);
    } finally {
      await cluster.stop();
    }
  });

  test('names the program that a given folder lacks', async () => {
    const assets = mkdtempSync(join(shared.runDir, 'assets-'));
    await expect(startCluster({ kubeconfig: '', assets })).rejects.toThrow(/KUBEBUILDER_ASSETS names .* has no etcd/);
  });

  test('uses a given cluster and starts only what that does not have', async () => {
    const cluster = await startCluster({ kubeconfig: shared.kubeconfig });
    try {
      expect(cluster.info.kubeconfig).toBe(shared.kubeconfig);
      expect(readdirSync(`${cluster.info.runDir}/pids`).sort()).toEqual(['s3', 'sshd']);
    } finally {
      await cluster.stop();
    }
  });
});
