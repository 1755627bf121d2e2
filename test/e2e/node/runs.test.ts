import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, inject, test } from 'vitest';
import { cgroupName, hierarchies } from '../../cluster/node/cgroups.ts';
import { isAlive } from '../../cluster/procfs.ts';
import { recordedProcesses } from '../../cluster/run-dir.ts';
import { startCluster, whyNoNode } from '../../cluster/start.ts';
import type { ClusterInfo, NodeInfo } from '../../support/cluster-info.ts';
import { eventually } from '../../support/eventually.ts';
import { K8s } from '../../support/k8s.ts';
import { podNamespace, runPod, waitForPod } from '../../support/pods.ts';

const HOLDER = fileURLToPath(new URL('../../support/hold-cluster.ts', import.meta.url));
const { node, ...shared } = inject('cluster');

interface Held {
  child: ChildProcess;
  info: ClusterInfo & { node: NodeInfo };
  ownerPid: number;
  said: string[];
}

/** Starts a cluster with a node in another process, with its run directory in a folder of choice. */
async function hold(folder: string): Promise<Held> {
  const env = { ...process.env, TMPDIR: folder };
  const child = spawn(process.execPath, [HOLDER, '--node'], { stdio: ['pipe', 'pipe', 'inherit'], env });
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the starter ended with code ${code}`)));
  const line = once(createInterface({ input: child.stdout }), 'line') as Promise<[string]>;
  const [text] = await Promise.race([line, ended]);
  ended.catch(() => undefined);
  return { ...(JSON.parse(text) as Omit<Held, 'child'>), child };
}

/** Starts a pod that runs until somebody ends it. */
async function startSleeper(info: Held['info']) {
  await using k8s = new K8s(info.kubeconfig);
  const namespace = await podNamespace(k8s, 'sleeper');
  const container = { name: 'main', image: info.node.images.busybox, command: ['sleep', '3600'] };
  await k8s.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'sleeper', namespace },
    spec: { containers: [container], terminationGracePeriodSeconds: 0 },
  });
  await waitForPod(k8s, { name: 'sleeper', namespace }, ({ state }) => state?.running !== undefined);
  return { apiVersion: 'v1', kind: 'Pod', name: 'sleeper', namespace };
}

/** What the node sees at a path: the file or folder of its run that is mounted there, undefined for what the whole machine sees. */
function mountedFrom(info: Held['info'], path: string): string | undefined {
  const [pid] = readFileSync(join(info.runDir, 'pids', 'node-first'), 'utf8').split(' ');
  const lines = readFileSync(`/proc/${pid}/mountinfo`, 'utf8').split('\n');
  const [, , , root] = lines.findLast((line) => line.split(' ')[4] === path)?.split(' ') ?? [];
  return root;
}

/** What this machine still has of a run with a node: cgroups, an interface, routes, mounts, processes. */
function traces(info: Held['info']): string[] {
  const index = info.node.hostAddress.split('.')[1];
  const name = cgroupName(info.runDir);
  const cgroups = hierarchies().map((root) => join(root, name));
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
  const commands = readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    });
  return [
    ...[info.runDir, `/sys/class/net/skop-node${index}`, ...cgroups].filter((path) => existsSync(path)),
    ...[...mounts, ...commands].filter((line) => line.includes(info.runDir)),
  ];
}

const cgroupProcesses = (runDir: string): string[] =>
  readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(cgroupName(runDir));
      } catch {
        return false;
      }
    });

describe.skipIf(!node)('runs with a node', () => {
  if (!node) return;

  test('stand side by side and reach nothing of each other, and leave nothing when they end', async () => {
    const other = await startCluster({ kubeconfig: '', node: true });
    const info = other.info as Held['info'];
    try {
      expect(info.node.hostAddress).not.toBe(node.hostAddress);
      await startSleeper(info);
      expect(cgroupProcesses(info.runDir).length).toBeGreaterThanOrEqual(2);
      await using k8s = new K8s(shared.kubeconfig);
      const namespace = await podNamespace(k8s, 'apart');
      const [host, port] = info.node.baseRegistry.address.split(':');
      const script = `nc -w 3 ${node.baseRegistry.address.replace(':', ' ')} </dev/null && echo own
        nc -w 3 ${host} ${port} </dev/null && echo other
        nc -w 3 ${info.node.address} 10250 </dev/null && echo kubelet; true`;
      const command = ['sh', '-c', script];
      const { log } = await runPod(k8s, { name: 'apart', namespace, image: node.images.busybox, command });
      expect(log.split('\n').filter((line) => /^(own|other|kubelet)$/.test(line))).toEqual(['own']);
      await k8s.delete({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
    } finally {
      await other.stop();
    }
    expect(cgroupProcesses(info.runDir)).toEqual([]);
    await eventually(() => traces(info).length === 0 || Promise.reject(new Error(traces(info).join('\n'))), {
      what: 'no trace of the run',
    });
  });

  test.each(['/run', '/var/lib', '/var/log', '/proc/sys/kernel/panic', '/proc/sys/vm/overcommit_memory'])(
    'keep to themselves what the node writes to %s',
    (path) => {
      const from = mountedFrom({ ...shared, node }, path);
      expect(from).toMatch(path === '/run' ? /^\/$/ : new RegExp(`${shared.runDir}/node${path}$`));
    },
  );

  test("go on after one of the node's programs was killed and started again", async () => {
    const other = await startCluster({ kubeconfig: '', node: true });
    try {
      const info = other.info as Held['info'];
      const ref = await startSleeper(info);
      await using k8s = new K8s(info.kubeconfig);
      const before = await k8s.get(ref);
      for (const program of ['kubelet', 'containerd', 'kube-proxy', 'kube-scheduler', 'registry']) {
        await other.restart(program);
      }
      const { namespace } = ref;
      const command = ['echo', 'again'];
      const { log } = await runPod(k8s, { name: 'again', namespace, image: info.node.images.busybox, command });
      expect(log).toBe('again\n');
      const after = await k8s.get(ref);
      expect(after?.status.containerStatuses[0].containerID).toBe(before?.status.containerStatuses[0].containerID);
      expect(after?.status.containerStatuses[0].restartCount).toBe(0);
    } finally {
      await other.stop();
    }
  });

  test('are swept by the next start when the process that owns them was killed', async () => {
    // A folder of its own, so that no other start on this machine sweeps first.
    const folder = mkdtempSync(join(tmpdir(), 'skill-operator-sweep-'));
    const children: ChildProcess[] = [];
    try {
      const killed = await hold(folder);
      children.push(killed.child);
      await startSleeper(killed.info);
      process.kill(killed.ownerPid, 'SIGKILL');
      await eventually(() => !existsSync(`/proc/${killed.ownerPid}`), { what: 'the end of the owner' });
      const recorded = recordedProcesses(killed.info.runDir);
      expect(recorded.filter(isAlive)).toEqual(recorded);
      expect(cgroupProcesses(killed.info.runDir).length).toBeGreaterThanOrEqual(2);

      const next = await hold(folder);
      children.push(next.child);
      expect(next.said).toContain('removed what 1 killed run(s) left behind');
      expect(recorded.filter(isAlive)).toEqual([]);
      expect(cgroupProcesses(killed.info.runDir)).toEqual([]);
      const taken = next.info.node.hostAddress === killed.info.node.hostAddress;
      await eventually(() => taken || traces(killed.info).length === 0, { what: 'no trace of the killed run' });

      next.child.kill('SIGKILL');
      await eventually(() => traces(next.info).length === 0, { what: 'no trace of the next run' });
    } finally {
      for (const child of children) child.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test.each([
    ['a kubeconfig', { kubeconfig: '/some/file' }, /KUBECONFIG names a cluster.*unset it/],
    ['a folder of programs', { assets: '/some/folder' }, /KUBEBUILDER_ASSETS holds no node programs: unset it/],
  ])('are refused with a reason when %s was given', async (_what, given, expected) => {
    expect(await whyNoNode({ kubeconfig: '', ...given })).toMatch(expected);
    await expect(startCluster({ kubeconfig: '', node: true, ...given })).rejects.toThrow(/^No node can run here: /);
  });

  test('can run here', async () => {
    expect(await whyNoNode({ kubeconfig: '' })).toBeUndefined();
  });
});
