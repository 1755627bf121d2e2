import { readFileSync, readlinkSync } from 'node:fs';
import type { Run } from '../component.ts';
import { execOk } from '../exec.ts';

/** Name of the component that holds the node's namespaces. */
export const NODE = 'node';

/**
 * The node is a set of namespaces of its own (network, mounts, processes) held by its first process. Everything that runs on it, and every
 * mount that containers need, lives in there and ends with that process; this machine's own mounts and processes never see a change.
 */
export const HOLDER_FLAGS = [
  '--net',
  '--mount',
  '--pid',
  '--fork',
  '--mount-proc',
  '--kill-child',
  '--propagation=private',
];

/** Pid (as seen from here) of the node's first process; undefined until it runs. */
export function firstProcess(run: Run, program: string): number | undefined {
  const parent = run.processes.pid(NODE);
  try {
    const child = Number(readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim());
    return readlinkSync(`/proc/${child}/exe`) === program ? child : undefined;
  } catch {
    return undefined;
  }
}

/** The command that runs a program on the node. Paths must be absolute. */
export function onNode(run: Run, file: string, args: readonly string[]): { file: string; args: readonly string[] } {
  if (run.node.firstPid === undefined) throw new Error('the node does not run');
  return { file: 'nsenter', args: [`--target=${run.node.firstPid}`, '--net', '--mount', '--pid', '--', file, ...args] };
}

/** Runs a program on the node to its end. */
export async function execOnNode(run: Run, signal: AbortSignal, file: string, ...args: string[]): Promise<string> {
  const command = onNode(run, file, args);
  return await execOk(command.file, command.args, { signal });
}
