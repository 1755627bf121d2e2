import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Run } from '../component.ts';
import { ensureKubeBinary } from '../kube-binary.ts';

/** Path of a Kubernetes program in the folder that the person gave; undefined when it has none. */
export function fromAssets(run: Run, name: string): string | undefined {
  const { assets } = run.host;
  if (assets === undefined) return undefined;
  const path = join(assets, name);
  return existsSync(path) ? path : undefined;
}

/** Makes `run.program(name)` work: from the given folder, else a link to the one compiled binary. */
export async function ensureKubeProgram(run: Run, name: string, signal: AbortSignal): Promise<void> {
  const given = fromAssets(run, name);
  if (given !== undefined) {
    run.programs.set(name, given);
    return;
  }
  if (run.host.assets !== undefined) {
    throw new Error(
      `KUBEBUILDER_ASSETS names ${run.host.assets}, which has no ${name}; unset it or name a folder that has.`,
    );
  }
  const binary = await ensureKubeBinary(run.host, signal);
  const link = run.path('bin', name);
  if (!existsSync(link)) symlinkSync(binary, link);
  run.programs.set(name, link);
}
