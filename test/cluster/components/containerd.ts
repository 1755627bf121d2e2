import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Component, Run } from '../component.ts';
import { execOnNode, onNode } from '../node/namespace.ts';
import { ensurePrograms } from '../packages.ts';

const NAME = 'containerd';
const PLUGINS = '/usr/lib/cni';

// On the node's own /run: the path of a socket may have 104 characters, which a run directory easily takes up.
const STATE = '/run/containerd';

/** Path of the runtime's socket on the node. */
export const CONTAINERD_SOCKET = `${STATE}/containerd.sock`;

/** Containerd's settings; every path lies in the run's directory or on the node's own mounts. */
function settings(run: Run): string {
  const quoted = (...parts: string[]) => JSON.stringify(run.path(NAME, ...parts));
  return `version = 2
root = ${quoted('root')}
state = ${JSON.stringify(STATE)}

[grpc]
  address = ${JSON.stringify(CONTAINERD_SOCKET)}

# By default a folder of the whole machine.
[plugins."io.containerd.internal.v1.opt"]
  path = ${quoted('opt')}

[plugins."io.containerd.grpc.v1.cri"]
  # Without the capability SYS_RESOURCE no process may be protected more than its parent is.
  restrict_oom_score_adj = true
  sandbox_image = ${JSON.stringify(run.node.pauseImage)}
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = ${quoted('certs.d')}
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = ${JSON.stringify(PLUGINS)}
    conf_dir = ${quoted('net.d')}
`;
}

/** Tells the runtime that a registry speaks plain http. */
function allowHttp(run: Run, address: string | undefined): void {
  if (address === undefined) throw new Error('a registry did not tell its address');
  const dir = run.path(NAME, 'certs.d', address);
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'hosts.toml'), `server = "http://${address}"\n[host."http://${address}"]\n`);
}

function podNetwork(range: string): string {
  return JSON.stringify({
    cniVersion: '1.0.0',
    name: 'pods',
    plugins: [
      {
        type: 'bridge',
        bridge: 'cni0',
        isGateway: true,
        ipMasq: false,
        hairpinMode: true,
        ipam: { type: 'host-local', ranges: [[{ subnet: range }]], routes: [{ dst: '0.0.0.0/0' }] },
      },
    ],
  });
}

/** The container runtime, with a bridge for pods. */
export const containerd: Component = {
  name: NAME,
  needs: ['node', 'node-images', 'registry'],
  ensureInstalled: (run, signal) =>
    ensurePrograms(
      [
        { probe: ['containerd', '--version'], debianPackage: 'containerd' },
        { probe: ['runc', '--version'], debianPackage: 'runc' },
        { probe: [join(PLUGINS, 'bridge'), '-h'], debianPackage: 'containernetworking-plugins' },
      ],
      run.host.say,
      signal,
    ),
  start: async (run) => {
    if (!run.network) throw new Error('the node has no network');
    mkdirSync(run.path(NAME, 'net.d'), { recursive: true });
    writeFileSync(run.path(NAME, 'net.d', '10-pods.conflist'), podNetwork(run.network.podRange));
    allowHttp(run, run.node.baseRegistry?.address);
    allowHttp(run, run.node.registry?.address);
    writeFileSync(run.path(NAME, 'config.toml'), settings(run));
    run.processes.start({
      name: NAME,
      ...onNode(run, '/usr/bin/containerd', ['--config', run.path(NAME, 'config.toml')]),
    });
  },
  ready: async (run, signal) => {
    await execOnNode(run, signal, 'ctr', '--address', CONTAINERD_SOCKET, '--connect-timeout', '2s', 'version');
    return true;
  },
  stop: (run) => run.processes.stop(NAME),
};
