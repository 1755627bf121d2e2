import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cached, cacheKey } from './cache.ts';
import type { Host } from './component.ts';
import { exec, execOk, isInstalled } from './exec.ts';

const SOURCE = join(dirname(fileURLToPath(import.meta.url)), 'kube');
const KUBERNETES = 'v1.34.4';
// Without a version the API server calls itself v0.0.0 and refuses to serve.
const VERSION_PACKAGE = 'k8s.io/component-base/version';
const LDFLAGS = [
  '-s -w',
  `-X ${VERSION_PACKAGE}.gitVersion=${KUBERNETES}`,
  `-X ${VERSION_PACKAGE}.gitMajor=1`,
  `-X ${VERSION_PACKAGE}.gitMinor=34`,
].join(' ');
// Without -buildvcs=false Go would ask Git about the work tree, which fails in a clone that belongs to another user.
const BUILD_FLAGS = ['-buildvcs=false', '-ldflags', LDFLAGS];
const BUILD_ENV = { CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly' };
const BUILD_TIMEOUT_MS = 45 * 60_000;
const PROGRESS_MS = 15_000;
const GO_NEEDED: readonly [number, number] = [1, 26];

const WAYS_AROUND =
  'Install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver, or KUBECONFIG to a cluster.';

/** The name of the cache entry: versions, flags, sources and platform decide it. */
function kubeCacheName(): string {
  const files = ['go.mod', 'go.sum', 'main.go'].map((name) => readFileSync(join(SOURCE, name)));
  return `kube-${cacheKey(...BUILD_FLAGS, JSON.stringify(BUILD_ENV), process.platform, process.arch, ...files)}`;
}

/** Throws a friendly error unless `go version` printed a new enough release. */
export function checkGoVersion(output: string): void {
  const [, major, minor] = /\bgo(\d+)\.(\d+)/.exec(output) ?? [];
  const found = [Number(major), Number(minor)] as const;
  const enough = found[0] > GO_NEEDED[0] || (found[0] === GO_NEEDED[0] && found[1] >= GO_NEEDED[1]);
  if (!enough) {
    throw new Error(`Go ${major}.${minor} is too old to compile the Kubernetes servers. ${WAYS_AROUND}`);
  }
}

async function requireGo(signal: AbortSignal): Promise<void> {
  if (!(await isInstalled('go', ['version'], signal))) {
    throw new Error(`The Kubernetes servers are compiled once per machine and Go is not installed. ${WAYS_AROUND}`);
  }
  const { stdout } = await exec('go', ['version'], { signal });
  checkGoVersion(stdout);
}

async function build(dir: string, host: Host, signal: AbortSignal): Promise<void> {
  await requireGo(signal);
  const began = performance.now();
  let what = 'fetching modules';
  let packages = 0;
  const report = () => {
    const seconds = Math.round((performance.now() - began) / 1000);
    host.say(
      `compiling etcd and the Kubernetes servers, once per machine: ${seconds} s, ${packages} packages, ${what}`,
    );
  };
  host.say('compiling etcd and the Kubernetes servers, once per machine; about 7 minutes on 2 cores');
  const timer = setInterval(report, PROGRESS_MS);
  try {
    await execOk('go', ['build', '-v', '-o', join(dir, 'kube'), ...BUILD_FLAGS, '.'], {
      signal,
      cwd: SOURCE,
      env: BUILD_ENV,
      timeoutMs: BUILD_TIMEOUT_MS,
      onErrorLine: (line) => {
        what = line.trim();
        if (!line.startsWith('go: ')) packages++;
      },
    });
    report();
  } finally {
    clearInterval(timer);
  }
}

/** Path of the one binary that is etcd and every Kubernetes server, by the name it is called with; compiled if need be. */
export async function ensureKubeBinary(host: Host, signal: AbortSignal): Promise<string> {
  const dir = await cached(
    {
      name: kubeCacheName(),
      onWait: (seconds) => host.say(`another run compiles the Kubernetes servers; waiting for it since ${seconds} s`),
      make: (into) => build(into, host, signal),
    },
    signal,
  );
  return join(dir, 'kube');
}
