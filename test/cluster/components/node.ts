import { randomInt } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Component, Run } from '../component.ts';
import { exec, execOk } from '../exec.ts';
import { ensureGoProgram } from '../go-program.ts';
import { createCgroups } from '../node/cgroups.ts';
import { execOnNode, firstProcess, HOLDER_FLAGS, NODE } from '../node/namespace.ts';
import { isTaken, type NodeNetwork, networkIndices, networkOf } from '../node/network.ts';
import { ensurePrograms } from '../packages.ts';
import { identify } from '../procfs.ts';

const START_TIMEOUT_MS = 10_000;
const POLL_MS = 10;
/** Folders that container programs use whatever they are told; on the node each is a folder of the run. */
const OWN_FOLDERS = ['/var/lib', '/var/log'];
/** What a kubelet wants of the kernel. These belong to the whole machine: on the node they are files that show what is wanted. */
const KERNEL_SETTINGS = {
  'kernel/keys/root_maxbytes': 25_000_000,
  'kernel/keys/root_maxkeys': 1_000_000,
  'kernel/panic': 10,
  'kernel/panic_on_oops': 1,
  'vm/overcommit_memory': 1,
  'vm/panic_on_oom': 0,
};

async function waitForFirstProcess(run: Run, program: string, signal: AbortSignal): Promise<number> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    run.processes.assertRunning(NODE);
    const pid = firstProcess(run, program);
    if (pid !== undefined) return pid;
    await delay(POLL_MS, undefined, { signal });
  }
  throw new Error(`the node's first process did not start within ${START_TIMEOUT_MS / 1000} s`);
}

/** Destinations of this machine's routes. */
async function routes(signal: AbortSignal): Promise<string[]> {
  const text = await execOk('ip', ['-4', '-j', 'route', 'show', 'table', 'all'], { signal });
  return (JSON.parse(text) as { dst: string }[]).map(({ dst }) => dst);
}

/** Links this machine to the node with a pair of interfaces. The first free name wins, which the kernel gives to one run only. */
async function link(pid: number, signal: AbortSignal): Promise<NodeNetwork> {
  const used = await routes(signal);
  const indices = networkIndices(randomInt(1000)).filter((index) => !isTaken(index, used));
  for (const index of indices) {
    const network = networkOf(index);
    const pair = ['link', 'add', network.interface, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid)];
    const { code, stderr } = await exec('ip', pair, { signal });
    if (code === 0) return network;
    if (!stderr.includes('File exists')) throw new Error(`ip ${pair.join(' ')} ended with code ${code}: ${stderr}`);
  }
  throw new Error(
    'All ranges 10.200.0.0/16 to 10.249.0.0/16 are in use: end other runs, or take away routes into one.',
  );
}

async function address(run: Run, network: NodeNetwork, signal: AbortSignal): Promise<void> {
  const { hostAddress, nodeAddress, podRange, serviceRange } = network;
  const host = async (...args: string[]) => void (await execOk('ip', args, { signal }));
  const node = async (...args: string[]) => void (await execOnNode(run, signal, 'ip', ...args));
  await host('address', 'add', `${hostAddress}/30`, 'dev', network.interface);
  await host('link', 'set', network.interface, 'up');
  await node('link', 'set', 'lo', 'up');
  await node('address', 'add', `${nodeAddress}/30`, 'dev', 'eth0');
  await node('link', 'set', 'eth0', 'up');
  // Pods reach this machine and nothing behind it: an answer at once is better than a time-out.
  await node('route', 'add', 'unreachable', 'default');
  await host('route', 'add', podRange, 'via', nodeAddress);
  await host('route', 'add', serviceRange, 'via', nodeAddress);
  await execOnNode(run, signal, 'sysctl', '-q', '-w', 'net.ipv4.ip_forward=1');
}

async function mountFolders(run: Run, signal: AbortSignal): Promise<void> {
  await execOnNode(run, signal, 'mount', '-t', 'tmpfs', 'tmpfs', '/run');
  for (const folder of OWN_FOLDERS) {
    const own = run.path(NODE, folder);
    mkdirSync(own, { recursive: true });
    await execOnNode(run, signal, 'mount', '--bind', own, folder);
  }
  for (const [setting, value] of Object.entries(KERNEL_SETTINGS)) {
    const file = join('/proc/sys', setting);
    if (!existsSync(file)) continue;
    const own = run.path(NODE, file);
    mkdirSync(dirname(own), { recursive: true });
    writeFileSync(own, `${value}\n`);
    await execOnNode(run, signal, 'mount', '--bind', own, file);
  }
  // As on any node: what is mounted for a pod later must show up in containers that asked for it.
  await execOnNode(run, signal, 'mount', '--make-rshared', '/');
}

/** The machine that pods run on: namespaces with an address, a link to this machine and folders of its own. */
export const node: Component = {
  name: NODE,
  needs: [],
  ensureInstalled: async (run, signal) => {
    const needs = [
      { probe: ['unshare', '--version'], debianPackage: 'util-linux' },
      { probe: ['mount', '--version'], debianPackage: 'mount' },
      { probe: ['ip', '-V'], debianPackage: 'iproute2' },
      { probe: ['sysctl', '--version'], debianPackage: 'procps' },
    ] as const;
    await ensurePrograms(needs, run.host.say, signal);
    const pause = await ensureGoProgram(
      {
        name: 'pause',
        folder: 'pause',
        files: ['go.mod', 'main.go'],
        package: '.',
        flags: ['-buildvcs=false', '-trimpath', '-ldflags', '-s -w'],
        what: 'the first process of pods',
        takes: 'a few seconds',
        waysAround: 'Install Go 1.26 or newer.',
      },
      run.host,
      signal,
    );
    run.programs.set('pause', pause);
  },
  start: async (run, signal) => {
    const pause = run.program('pause');
    run.processes.start({ name: NODE, file: 'unshare', args: [...HOLDER_FLAGS, '--', pause] });
    const pid = await waitForFirstProcess(run, pause, signal);
    const id = identify(pid);
    // While this process is there, so is something of the node: who ends the run waits for it.
    writeFileSync(run.path('pids', `${NODE}-first`), `${id.pid} ${id.startTime}`);
    run.node.firstPid = pid;
    createCgroups(run.dir);
    await mountFolders(run, signal);
    const network = await link(pid, signal);
    await address(run, network, signal);
    run.network = network;
  },
  ready: async (run) => firstProcess(run, run.program('pause')) === run.node.firstPid,
  stop: (run) => run.processes.stop(NODE),
};
