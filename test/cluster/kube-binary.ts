import type { Host } from './component.ts';
import { ensureGoProgram } from './go-program.ts';

const KUBERNETES = 'v1.34.4';
// Without a version the API server calls itself v0.0.0 and refuses to serve.
const VERSION_PACKAGE = 'k8s.io/component-base/version';
const LDFLAGS = [
  '-s -w',
  `-X ${VERSION_PACKAGE}.gitVersion=${KUBERNETES}`,
  `-X ${VERSION_PACKAGE}.gitMajor=1`,
  `-X ${VERSION_PACKAGE}.gitMinor=34`,
].join(' ');

/** Path of the one binary that is etcd and every Kubernetes server, by the name it is called with; compiled if need be. */
export async function ensureKubeBinary(host: Host, signal: AbortSignal): Promise<string> {
  return await ensureGoProgram(
    {
      name: 'kube',
      folder: 'kube',
      files: ['go.mod', 'go.sum', 'main.go'],
      package: '.',
      // Without -buildvcs=false Go would ask Git about the work tree, which fails in a clone that belongs to another user.
      flags: ['-buildvcs=false', '-ldflags', LDFLAGS],
      what: 'etcd and the Kubernetes servers',
      takes: 'about 7 minutes',
      waysAround:
        'Install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver, or KUBECONFIG to a cluster.',
    },
    host,
    signal,
  );
}
