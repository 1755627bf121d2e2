import type { Host } from '../component.ts';
import { ensureWeed } from '../components/seaweedfs.ts';
import { ensureGoProgram } from '../go-program.ts';
import { busyboxImage, ensureImage } from './recipes.ts';

/** Images of what a cluster offers its pods; made once per machine, each as the path of an OCI layout. */

type Teller = Pick<Host, 'say'>;

/** CoreDNS with the plugin that names Services. */
export async function coreDnsImage(host: Teller, signal: AbortSignal): Promise<string> {
  const program = await ensureGoProgram(
    {
      name: 'coredns',
      folder: 'coredns',
      files: ['go.mod', 'go.sum', 'main.go'],
      package: '.',
      flags: ['-buildvcs=false', '-ldflags', '-s -w'],
      what: 'CoreDNS',
      takes: 'about a minute',
      waysAround: 'Install Go 1.26 or newer.',
    },
    host,
    signal,
  );
  const config = { Entrypoint: ['/coredns'] };
  const entries = async () => [{ path: 'coredns', file: program }];
  return await ensureImage({ name: 'coredns', key: [program], config, entries }, host, signal);
}

/** SeaweedFS where its own image has it, with a shell. */
export async function seaweedImage(host: Teller, signal: AbortSignal): Promise<string> {
  const program = await ensureWeed(host, signal);
  const base = await busyboxImage(host, signal);
  const entries = async () => [
    { path: 'usr/bin/', folder: true as const },
    { path: 'usr/bin/weed', file: program },
  ];
  return await ensureImage({ name: 'seaweedfs', key: [program, base], config: {}, entries, base }, host, signal);
}
