/**
 * A process that leads and writes as fast as it can; for leader.test.ts.
 * Arguments: kubeconfig, namespace, identity, leaseMs, renewMs, retryMs. Prints `leading`; exits 3 when the lease is lost.
 */
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { loadKubeConfig } from '../../../src/kube/connection.ts';
import { LeaseLost } from '../../../src/kube/errors.ts';
import { LeaderElection } from '../../../src/kube/leader.ts';
import { KubeClient } from '../../../src/kube/rest.ts';
import type { Resource } from '../../../src/kube/types.ts';

const [kubeconfig = '', namespace = '', identity = '', ...times] = process.argv.slice(2);
const [leaseMs = 0, renewMs = 0, retryMs = 0] = times.map(Number);
const CONFIG_MAPS: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };
const common = { load: () => loadKubeConfig(kubeconfig), version: 'test' };
const api = new KubeClient({ ...common, component: 'leader', connections: 2 });
/** Of a process that goes on, nobody knows which callback comes first; here the election is the last to notice. */
const clock: Clock = {
  ...systemClock,
  sleep: async (ms, signal) => {
    const began = systemClock.monotonic();
    await systemClock.sleep(ms, signal);
    if (systemClock.monotonic() - began > ms + 1000) await systemClock.sleep(500, signal);
  },
};
const leader = new LeaderElection({ api, namespace, name: 'lease', identity, leaseMs, renewMs, retryMs, clock });
const client = new KubeClient({ ...common, component: 'work', connections: 2, fence: () => leader.check() });

async function write(signal: AbortSignal): Promise<void> {
  for (let n = 0; !signal.aborted; n++) {
    const body = { data: { n: `${identity}-${n}` } };
    try {
      await client.patch(CONFIG_MAPS, namespace, 'written', { kind: 'merge', body }, signal);
    } catch {
      // As a controller would: whatever failed is tried again.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

try {
  // Far more writers than connections, so that many writes wait when the process is stopped.
  await leader.run(new AbortController().signal, async (signal) => {
    process.stdout.write('leading\n');
    await Promise.all(Array.from({ length: 64 }, () => write(signal)));
  });
} catch (error) {
  process.exit(error instanceof LeaseLost ? 3 : 4);
}
