/** A program that starts a cluster, prints what `startCluster` gave and then waits: for tests that kill the starter. */
import { startCluster } from '../cluster/start.ts';

const { info, ownerPid } = await startCluster({ kubeconfig: '' });
console.log(JSON.stringify({ info, ownerPid }));
process.stdin.resume();
