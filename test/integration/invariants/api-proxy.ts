import { type Gate, startGate } from '../../support/gate.ts';
import { clusterOf, type OperatorAccount, withCluster } from '../../support/operator-account.ts';

/** The API server behind a wire that can be cut. */
interface ApiProxy extends Gate {
  /** The account with the address of the proxy. */
  account: OperatorAccount;
}

/** Puts a gate before the API server that an account uses. */
export async function startApiProxy(account: OperatorAccount): Promise<ApiProxy> {
  const cluster = clusterOf(account);
  const gate = await startGate('127.0.0.1', new URL(cluster.server));
  return Object.assign(gate, { account: withCluster(account, { ...cluster, server: `https://${gate.address}` }) });
}
