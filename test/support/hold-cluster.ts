/** A program that starts a cluster, prints what `startCluster` said and gave, and then waits: for tests that kill the starter. */
import { startCluster } from '../cluster/start.ts';

const said: string[] = [];
const { info, ownerPid } = await startCluster({
  kubeconfig: '',
  node: process.argv.includes('--node'),
  say: (line) => said.push(line),
});
console.log(JSON.stringify({ info, ownerPid, said }));
process.stdin.resume();
