import type { Host } from './component.ts';
import { ensureGoProgram } from './go-program.ts';

const HELM = 'v3.22.0';
/** What `helm template` and `helm lint` take the cluster for when they see none. */
const KUBERNETES_MINOR = '34';
const FLAGS = [
  '-s -w',
  `-X helm.sh/helm/v3/internal/version.version=${HELM}`,
  ...['pkg/lint/rules', 'pkg/chartutil'].flatMap((folder) => [
    `-X helm.sh/helm/v3/${folder}.k8sVersionMajor=1`,
    `-X helm.sh/helm/v3/${folder}.k8sVersionMinor=${KUBERNETES_MINOR}`,
  ]),
].join(' ');

/** Path of Helm, compiled once per machine from its module. */
export async function ensureHelm(host: Pick<Host, 'say'>, signal: AbortSignal): Promise<string> {
  return await ensureGoProgram(
    {
      name: 'helm',
      folder: 'helm',
      files: ['go.mod', 'go.sum'],
      package: 'helm.sh/helm/v3/cmd/helm',
      flags: ['-buildvcs=false', '-ldflags', FLAGS],
      what: 'Helm',
      takes: 'about 4 minutes',
      waysAround: 'Install Go 1.26 or newer.',
    },
    host,
    signal,
  );
}
