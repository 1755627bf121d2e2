import { exec } from '../exec.ts';
import { HOLDER_FLAGS } from './namespace.ts';

/** Why no node can run here, as the end of a sentence; undefined when one can. Tries what a node needs, since containers often forbid it. */
export async function nodeObstacle(
  given: { kubeconfig?: string | undefined; assets?: string | undefined },
  signal: AbortSignal,
): Promise<string | undefined> {
  if (process.platform !== 'linux') return 'a node needs Linux';
  if (process.getuid?.() !== 0) return 'a node needs root: run the tests with sudo';
  if (given.kubeconfig) return 'KUBECONFIG names a cluster, and its nodes are left alone: unset it';
  if (given.assets) return 'KUBEBUILDER_ASSETS holds no node programs: unset it';
  const tried = await exec('unshare', [...HOLDER_FLAGS, 'true'], { signal }).catch((error: unknown) => ({
    code: -1,
    stderr: String(error),
  }));
  if (tried.code === 0) return undefined;
  return `this machine forbids new namespaces (${tried.stderr.trim().split('\n').at(-1)}): use a virtual machine or a privileged container`;
}
